"""A place for one child process and what it holds, and whether that takes too long."""

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from contract import reasons
from contract.outcomes import Outcome
from contract.reasons import Reason
from kma.children.process import ChildProcess
from kma.delivery.in_flight import InFlight
from kma.delivery.settlement import SEND_REFUSED
from kma.handling.failure import failure
from kma.handling.handler import RETURNED, HandlingResult
from kma.spool.journal import FINISHED, Journal

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 60.0  # seconds after processes that died before they ended a handling
SMALL = 64 * 1024  # bytes of a message of which several may wait in a child


@dataclass(slots=True)  # one for each message: frozen ones take three times as long to make
class HandlingEnd:
    """One handling that is over. `seconds` since `run_agent` began, 0 where it is not measured (success)."""

    work: InFlight
    handled: HandlingResult
    pid: int = 0
    seconds: float = 0.0

    @property
    def to_commit(self) -> bool:
        """It went well, as soon as what it sent is committed with its message."""
        return bool(self.handled.sends) and not self.work.acknowledgement

    def refused(self, problem: str) -> "HandlingEnd":
        """What the broker has made of it, which did not commit."""
        return replace(self, handled=HandlingResult(Outcome.RAISED, failure(SEND_REFUSED, problem)))


def log_failure(log: Any, work: InFlight, handled: HandlingResult) -> None:
    log.warning(
        "handling failed",
        outcome=handled.outcome.value,
        type=handled.failure.exception_type if handled.failure else "",
        attempt=work.attempt,
        message_key=work.identified.key.text,
    )


class WorkerSlot:
    """A place for one child process; processes come and go, it keeps count of their early deaths."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self.process: ChildProcess | None = None
        self.held: list[InFlight] = []
        self.recalled: set[int] = set()  # slots that the child will answer with RECALLED
        self.unsent: list[bytes] = []
        self.halted_by = -1  # slot of the failure after which the child waits for RESUME
        self.ready = False
        self.leaving = False
        self.useful = False  # this process has ended a handling
        self.early_deaths = 0
        self.start_at = 0.0
        self.killed_as: HandlingResult | None = None
        self.writing = False

    def room(self, size: int, depth: int) -> bool:
        """Whether a message of `size` bytes may go to this child; small ones wait there, at most `depth` with
        it."""
        if not self.ready or self.leaving or self.recalled:
            return False
        held = self.held
        return not held or (len(held) < depth and size <= SMALL and len(held[-1].encoded) <= SMALL)

    @property
    def began(self) -> bool:
        return bool(self.held) and self._journal.started(self.held[0].slot) is not None

    @property
    def seconds(self) -> float:
        """How long the first of what it holds has been handled, 0 where nobody has begun it."""
        return self.seconds_of(self.held[0].slot)

    def seconds_of(self, slot: int) -> float:
        began = self._journal.started(slot)
        return time.monotonic() - began if began is not None else 0.0

    def finished(self) -> Iterator[HandlingEnd]:
        """Successes, as the journal tells them, up to the first handling that is something else."""
        held, state = self.held, self._journal.state
        while held and state(held[0].slot) == FINISHED:
            self.useful = True
            yield HandlingEnd(held.pop(0), RETURNED)

    def take(self, slot: int) -> InFlight | None:
        """What it holds in that slot, which it holds no longer."""
        for index, work in enumerate(self.held):
            if work.slot == slot:
                return self.held.pop(index)
        return None

    def recall(self, works: Sequence[InFlight]) -> list[InFlight]:
        """Those of `works` that it has not begun and may not begin any more. The child still has their
        frames: a slot is free when it has answered that it skipped it."""
        taken = [work for work in works if self._journal.recall(work.slot)]
        for work in taken:
            self.held.remove(work)
            self.recalled.add(work.slot)
        return taken

    def vacate(self, now: float) -> None:
        """Its process is gone. The next one may start at once, after a growing pause if this one ended
        nothing."""
        early = not self.useful
        self.early_deaths = self.early_deaths + 1 if early else 0
        pause = min(FIRST_PAUSE * 2 ** (self.early_deaths - 1), LONGEST_PAUSE) if early else 0.0
        self.start_at = now + pause
        self.held, self.recalled, self.unsent = [], set(), []
        self.ready = self.leaving = self.useful = self.writing = False
        self.halted_by = -1
        self.killed_as = None


# -- says so when a handling has used most of its time, before its process is killed for it ------------------


SHARE = 0.8  # of the limit
CHECK_PAUSE = 0.5  # seconds between two looks


class SlowHandlings:
    """One thread, the run's. `problem`: what is slow now, for whoever looks at the run."""

    def __init__(self, log: Any) -> None:
        self._log = log
        self._told: set[bytes] = set()
        self._look_at = 0.0
        self.problem: Reason | None = None

    def look(self, under_way: Iterable[tuple[InFlight, float]], limit_seconds: float, now: float) -> None:
        """`under_way` with the seconds of each; `limit_seconds` 0 = none, `now` monotonic."""
        if now < self._look_at:
            return
        self._look_at = now + min(CHECK_PAUSE, limit_seconds / 10 or CHECK_PAUSE)
        slow = [each for each in under_way if 0 < SHARE * limit_seconds <= each[1]]
        for work, seconds in slow:
            if work.record not in self._told:
                self._log.warning(
                    "handling slow",
                    message_key=work.identified.key.text,
                    attempt=work.attempt,
                    seconds=round(seconds, 1),
                    limit_seconds=limit_seconds,
                )
        self._told = {work.record for work, _ in slow}
        self.problem = None
        if slow:
            longest = max(seconds for _, seconds in slow)
            self.problem = reasons.HANDLING_SLOW(seconds=float(f"{longest:.3g}"), limit=limit_seconds)
