"""Deletes rows a few at a time, each few in a transaction of its own."""

import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import TypeVar

from django.db import connection, transaction

from failures.retention import checkpoints, pace
from failures.retention.pace import Pace
from failures.retention.rule import Range
from failures.retention.running import Counted, Turn

Deleted = TypeVar("Deleted")
Kind = TypeVar("Kind")

# On PostgreSQL it pauses for so much of the time that a chunk took.
SHARE_OF_OTHERS = 0.35


class Chunks:
    """`delete` is what one transaction does besides counting; `ends_at`: the monotonic instant at which the
    turn is over, which callers look at between chunks; `longest`: seconds of the longest transaction so
    far."""

    def __init__(self, turn: Turn, ends_at: float) -> None:
        self.turn, self.ends_at, self.pace, self.longest = turn, ends_at, _pace(), 0.0

    def among_others(self) -> None:
        """What is deleted from here on is no protocol: records that come late lock the same rows, of runs and
        activations."""
        self.pace = Pace(pace.FIRST)

    @property
    def over(self) -> bool:
        return time.monotonic() >= self.ends_at

    @property
    def size(self) -> int:
        return self.pace.size

    def delete(
        self,
        what: str,
        act: Callable[[], int],
        *,
        setting_key: str = "",
        of: Range | None = None,
        kept: Mapping[str, int] | None = None,
    ) -> int:
        """What `act` answers: how many rows it deleted. Raises LeaseLost, and then nothing is deleted."""

        def counted() -> int:
            deleted = act()
            self.turn.count(what, deleted, setting_key, of, kept or {})
            return deleted

        return self._timed(counted, lambda deleted: deleted)

    def delete_of_many(
        self, what: str, act: Callable[[], Counter[Kind]], of: Mapping[Kind, Counted]
    ) -> Counter[Kind]:
        """`act` answers {activation or setting: how many rows it deleted of it}, and so does this;
        `of`: as what they are counted. Raises LeaseLost, and then nothing is deleted."""

        def counted() -> Counter[Kind]:
            deleted, numbers = act(), Counter[Counted]()
            for kind, number in deleted.items():
                numbers[of[kind]] += number
            self.turn.count_many(what, numbers)
            return deleted

        return self._timed(counted, lambda deleted: sum(deleted.values()))

    def _timed(self, act: Callable[[], Deleted], number: Callable[[Deleted], int]) -> Deleted:
        with transaction.atomic():
            # What it waited for SQLite's lock is not how long it keeps others waiting.
            began = time.monotonic()
            deleted = act()
        took = time.monotonic() - began
        self.pace = self.pace.after(number(deleted), took)
        self.longest = max(self.longest, took)
        _let_others_in(took)
        return deleted


def _pace() -> Pace:
    """SQLite has one writer at a time. PostgreSQL deletes beside all others, who wait only for rows that they
    share; those of protocols nobody else writes."""
    return Pace(pace.FIRST, pace.AIM_SECONDS if connection.vendor == "sqlite" else pace.AIM_SECONDS_ALONE)


def _let_others_in(took: float) -> None:
    """SQLite has one writer at a time, and those who wait look again only every few milliseconds. Of
    PostgreSQL the disk is shared: what others commit waits for what a chunk has written."""
    if connection.vendor == "sqlite":
        checkpoints.move_on()
        time.sleep(min(0.1, max(0.01, took)))
    else:
        time.sleep(took * SHARE_OF_OTHERS)
