"""How stored protocols counted for the breaker, one by one: the rule of contract/breaker.py told again.
Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from uuid import UUID

from contract.breaker import Counts, TripReason, count, may_repeat, trips
from contract.outcomes import Outcome


class Verdict(Enum):
    """What the breaker made of a failure. WIPED: it counted, and a success or a new start came after it."""

    COUNTED = "counted"
    WIPED = "wiped"
    TEMPORARY = "temporary"
    SAME_MESSAGE = "same_message"
    NOT_THE_AGENT = "not_the_agent"
    NOTED = "noted"


@dataclass(frozen=True, slots=True)
class Failure:
    """What the breaker looks at in a protocol. `successes_before`: since the counted failure before it."""

    id: UUID
    at: datetime
    exception_type: str
    temporary: bool = False
    counted: bool = True
    successes_before: int = 0
    message_key: str = ""
    weak: bool = False
    attempt: int = 1
    outcome: str = Outcome.RAISED.value


@dataclass(frozen=True, slots=True)
class Step:
    """`gap`: messages handled well since the step before. `counts` and `trip` are those after the failure."""

    failure: Failure
    verdict: Verdict
    gap: int
    counts: Counts
    trip: TripReason | None


class Tally:
    """The counts of one setting on one server, fed with its failures in the order in which they were
    counted."""

    def __init__(self, m: int, *, count_once: bool = False, carried: Counts | None = None) -> None:
        self._m = m
        self._once = count_once
        self.counts = carried or Counts()
        self._told = 0  # successes since the last counted failure that a step has told already

    def add(self, failure: Failure) -> Step:
        gap = max(0, failure.successes_before - self._told)
        if gap:
            self.reset()
        if failure.temporary or not failure.counted:
            self._told = max(self._told, failure.successes_before)
            return Step(failure, _uncounted(failure), gap, self.counts, None)
        self._told = 0
        before, self.counts = self.counts, self._counted(failure)
        if self.counts.any == before.any:
            return Step(failure, Verdict.SAME_MESSAGE, gap, self.counts, None)
        return Step(failure, Verdict.COUNTED, gap, self.counts, trips(self.counts, self._m))

    def reset(self) -> None:
        """As a success does, and a person who enables the setting."""
        self.counts = Counts()

    def _counted(self, failure: Failure) -> Counts:
        return count(
            self.counts,
            Outcome.RAISED,
            failure.exception_type,
            message_key=failure.message_key if self._once else "",
            repeats=may_repeat(weak=failure.weak, attempt=failure.attempt),
        )


def _uncounted(failure: Failure) -> Verdict:
    if failure.outcome == Outcome.NOTED.value:
        return Verdict.NOTED
    return Verdict.TEMPORARY if failure.temporary else Verdict.NOT_THE_AGENT


def story(failures: Iterable[Failure], tally: Tally) -> list[Step]:
    """Every failure with what it means *now*: what a later success wiped out counts no more."""
    steps = [tally.add(failure) for failure in failures]
    last_gap = max((index for index, step in enumerate(steps) if step.gap), default=0)
    return [_wiped(step) if index < last_gap else step for index, step in enumerate(steps)]


def _wiped(step: Step) -> Step:
    if step.verdict is not Verdict.COUNTED:
        return step
    return Step(step.failure, Verdict.WIPED, step.gap, step.counts, step.trip)
