"""Seconds of processors of a test: of this process and of its children that have ended."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


class Processors:
    """Of one test after the other, from `begin` to `end`.

    `own` leaves out what fixtures of a wider scope take: it would fall on the test that comes first. It
    leaves out what victims of a kill took before the test, too: all of it is added to ours when they end.
    """

    def __init__(self) -> None:
        self.own = 0.0
        self._begun = self._shared = 0.0
        self._is_shared = False
        self._victims: dict[int, float] = {}

    def begin(self, *, kills: bool) -> None:
        self.own = self._shared = 0.0
        self._victims = _children() if kills else {}
        self._begun = _spent()

    def all(self) -> float:
        return _spent() - self._begun

    def end(self) -> None:
        took = self.all() - self._shared
        if self._victims:
            took -= sum(self._victims[pid] for pid in self._victims.keys() - _children().keys())
        self.own = max(0.0, took)

    @contextmanager
    def shared(self) -> Iterator[None]:
        """While a fixture of a wider scope is set up. One may set up another one."""
        outermost, self._is_shared = not self._is_shared, True
        before = _spent()
        try:
            yield
        finally:
            if outermost:
                self._is_shared = False
                self._shared += _spent() - before


def _spent() -> float:
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


def _children() -> dict[int, float]:
    """Of each that runs, with children of its own that have ended. A look at all processes takes
    milliseconds."""
    seconds = {}
    for place in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = place.read_text().rpartition(")")[2].split()
            if int(fields[1]) == os.getpid():
                seconds[int(place.parent.name)] = sum(map(int, fields[11:15])) / TICKS
    return seconds
