"""What a test reaches for outside its process, by the audit events of Python."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.bounds import EVENTS

# They put the database in its place with programs of PostgreSQL.
OF_THE_DATABASE = ("was_migrated", "django_db_setup")

# Python looks for a library of C with them, whoever is the first to import what needs one.
OF_PYTHON = ("ldconfig", "gcc", "cc", "ld", "objdump")


class Reach:
    """Of one test after the other. It hears from `begin` to `end`; what a fixture does at its end is not
    heard."""

    def __init__(self) -> None:
        self.found: dict[str, str] = {}
        self._hears = False
        self._others: set[int | None] = set()
        sys.addaudithook(self._on_event)

    def _on_event(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Hundreds of events in each test are none of these."""
        if (what := EVENTS.get(event)) is None or not self._hears or threading.get_ident() in self._others:
            return
        if arguments and str(arguments[0]).rpartition("/")[2] in OF_PYTHON:
            return
        shown = arguments[1:] if what == "socket" else arguments[:2]
        self.found.setdefault(what, f"{event} {shown}"[:200])

    def begin(self) -> None:
        """Threads of tests before this one may still end something."""
        self.found = {}
        self._others = {each.ident for each in threading.enumerate()} - {threading.get_ident()}
        self._hears = True

    def end(self) -> dict[str, str]:
        self._hears = False
        return self.found

    @contextmanager
    def shared(self, fixture: str) -> Iterator[None]:
        """While a fixture of a wider scope is set up."""
        before = self._hears
        self._hears = before and fixture not in OF_THE_DATABASE
        try:
            yield
        finally:
            self._hears = before
