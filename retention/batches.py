"""Deletes rows a few at a time, each few in a transaction of its own."""

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from django.db import transaction

from console.database.storage import SHARED_SECONDS, checkpoint, let_others_write, seconds_alone
from retention.rules import Range
from retention.run_ledger import Claim, Counted

# How many rows go in one transaction: by the last one, such that others wait for a moment only. Pure.


LEAST, FIRST, MOST = 10, 50, 20_000


@dataclass(frozen=True, slots=True)
class Pace:
    """`aim`: seconds that a chunk should take."""

    size: int
    aim: float = SHARED_SECONDS

    def after(self, rows: int, seconds: float) -> "Pace":
        """`seconds` is how long the transaction that deleted so many `rows` was open. It grows slowly and
        shrinks at once; a chunk that was not full says nothing of a larger one."""
        if not rows:
            return self
        wanted = int(rows * self.aim / max(seconds, 0.0001))
        if wanted >= self.size and rows < self.size:
            return self
        return Pace(max(LEAST, min(wanted, self.size * 3 // 2 + 1, MOST)), self.aim)


# -- batches -------------------------------------------------------------------------------------------------


Deleted = TypeVar("Deleted")
Kind = TypeVar("Kind")


class Chunks:
    """Of protocols at first, which nobody else writes. `delete` is what one transaction does besides
    counting; `ends_at`: the monotonic instant at which the step is over, which callers look at between
    chunks; `longest`: seconds of the longest transaction so far."""

    def __init__(self, claim: Claim, ends_at: float) -> None:
        self.claim, self.ends_at, self.longest = claim, ends_at, 0.0
        self.pace = Pace(FIRST, seconds_alone())

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
        checkpoint()
        let_others_write(took)
        return deleted


class TimeIsUp(Exception):
    """Its time is over: what is left is found by the next step."""
