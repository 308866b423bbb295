"""How stored protocols counted for the breaker, one by one: the rule of contract/breaker.py told again. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from uuid import UUID

from contract.breaker import Counts, TripReason, count, trips
from contract.outcomes import Outcome


class Verdict(Enum):
    """What the breaker made of a failure. WIPED: it counted, and a success or a new start came after it."""

    COUNTED = "counted"
    WIPED = "wiped"
    TEMPORARY = "temporary"
    SAME_MESSAGE = "same_message"
    NOT_THE_AGENT = "not_the_agent"


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


@dataclass(frozen=True, slots=True)
class Step:
    """`gap`: messages handled well since the step before. `counts` and `trip` are those after the failure."""

    failure: Failure
    verdict: Verdict
    gap: int
    counts: Counts
    trip: TripReason | None


class Tally:
    """The counts of one setting on one server, fed with its failures in the order in which they were counted."""

    def __init__(self, m: int, *, count_once: bool = False, carried: Counts | None = None) -> None:
        self._m = m
        self._once = count_once
        self.counts = carried or Counts()
        self._messages: set[str] = set()
        self._told = 0  # successes since the last counted failure that a step has told already

    def add(self, failure: Failure) -> Step:
        gap = max(0, failure.successes_before - self._told)
        if gap:
            self.reset()
        verdict = self._verdict(failure)
        trip = None
        if verdict is Verdict.COUNTED:
            self.counts = count(self.counts, Outcome.RAISED, failure.exception_type)
            self._messages.add(failure.message_key)
            trip = trips(self.counts, self._m)
        # A counted failure begins the successes anew, also one whose message was counted before.
        begins_anew = verdict in (Verdict.COUNTED, Verdict.SAME_MESSAGE)
        self._told = 0 if begins_anew else max(self._told, failure.successes_before)
        return Step(failure, verdict, gap, self.counts, trip)

    def reset(self) -> None:
        """As a success does, and a person who enables the setting."""
        self.counts = Counts()
        self._messages.clear()

    def _verdict(self, failure: Failure) -> Verdict:
        if failure.temporary:
            return Verdict.TEMPORARY
        if not failure.counted:
            return Verdict.NOT_THE_AGENT
        if self._once and failure.message_key and failure.message_key in self._messages:
            return Verdict.SAME_MESSAGE
        return Verdict.COUNTED


def story(failures: Iterable[Failure], tally: Tally) -> list[Step]:
    """Every failure with what it means *now*: what a later success wiped out counts no more."""
    steps = [tally.add(failure) for failure in failures]
    last_gap = max((index for index, step in enumerate(steps) if step.gap), default=0)
    return [_wiped(step) if index < last_gap else step for index, step in enumerate(steps)]


def _wiped(step: Step) -> Step:
    if step.verdict is not Verdict.COUNTED:
        return step
    return Step(step.failure, Verdict.WIPED, step.gap, step.counts, step.trip)
