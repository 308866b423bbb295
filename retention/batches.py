"""Deletes rows a few at a time, each few in a transaction of its own."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from django.db import connection, transaction

from retention.rules import Range
from retention.run_ledger import Claim, Counted

# How many rows go in one transaction: by the last one, such that others wait for a moment only. Pure.


# Where a chunk keeps every writer waiting, at most 50 ms: half of it, because no chunk is like the one
# before.
AIM_SECONDS = 0.025
# Where it locks only the rows that go, and nobody writes these: so long that its commit is a small part of
# it, so short that the disk has not much to do at once.
AIM_SECONDS_ALONE = 0.1
LEAST, FIRST, MOST = 10, 50, 20_000


@dataclass(frozen=True, slots=True)
class Pace:
    """`aim`: seconds that a chunk should take."""

    size: int
    aim: float = AIM_SECONDS

    def after(self, rows: int, seconds: float) -> "Pace":
        """`seconds` is how long the transaction that deleted so many `rows` was open. It grows slowly and
        shrinks at once; a chunk that was not full says nothing of a larger one."""
        if not rows:
            return self
        wanted = int(rows * self.aim / max(seconds, 0.0001))
        if wanted >= self.size and rows < self.size:
            return self
        return Pace(max(LEAST, min(wanted, self.size * 3 // 2 + 1, MOST)), self.aim)


# SQLite moves what was committed from its log into the file after the commit that makes the log long, while
# nobody is kept waiting but who committed. Here it is done between chunks: so how long one took is how long
# it held the lock.


@contextmanager
def apart() -> Iterator[None]:
    """No commit of this connection does it while this is entered."""
    if connection.vendor != "sqlite":
        yield
        return
    before = _pragma("wal_autocheckpoint")
    _pragma("wal_autocheckpoint=0")
    try:
        yield
    finally:
        _pragma(f"wal_autocheckpoint={before}")


def move_on() -> None:
    """Moves on as far as those who read allow."""
    if not connection.in_atomic_block:
        _pragma("wal_checkpoint(PASSIVE)")


def _pragma(words: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(f"PRAGMA {words}")
        return int(cursor.fetchone()[0])


# -- batches -------------------------------------------------------------------------------------------------


Deleted = TypeVar("Deleted")
Kind = TypeVar("Kind")

# On PostgreSQL it pauses for so much of the time that a chunk took.
SHARE_OF_OTHERS = 0.35


class Chunks:
    """`delete` is what one transaction does besides counting; `ends_at`: the monotonic instant at which the
    step is over, which callers look at between chunks; `longest`: seconds of the longest transaction so
    far."""

    def __init__(self, claim: Claim, ends_at: float) -> None:
        self.claim, self.ends_at, self.pace, self.longest = claim, ends_at, _pace(), 0.0

    def among_others(self) -> None:
        """Prepares for rows that are no protocols: records that come late lock the same rows, of runs and
        activations."""
        self.pace = Pace(FIRST)

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
        """Returns what `act` answers: how many rows it deleted. Raises LeaseLost, and then nothing is
        deleted."""

        def counted() -> int:
            deleted = act()
            self.claim.count(what, deleted, setting_key, of, kept or {})
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
            self.claim.count_many(what, numbers)
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
    return Pace(FIRST, AIM_SECONDS if connection.vendor == "sqlite" else AIM_SECONDS_ALONE)


def _let_others_in(took: float) -> None:
    """SQLite has one writer at a time, and those who wait look again only every few milliseconds. Of
    PostgreSQL the disk is shared: what others commit waits for what a chunk has written."""
    if connection.vendor == "sqlite":
        move_on()
        time.sleep(min(0.1, max(0.01, took)))
    else:
        time.sleep(took * SHARE_OF_OTHERS)


class TimeIsUp(Exception):
    """Its time is over: what is left is found by the next step."""
