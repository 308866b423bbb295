"""Decides how stored protocols counted for the breaker, one by one: the rule of contract/breaker.py told
again. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from uuid import UUID

from contract.breaker import Counts, TripReason, count, may_repeat, trips
from contract.outcomes import Outcome


class Verdict(Enum):
    """Holds what the breaker made of a failure. WIPED: it counted, and a success or a new start came after
    it."""

    COUNTED = "counted"
    WIPED = "wiped"
    TEMPORARY = "temporary"
    SAME_MESSAGE = "same_message"
    NOT_THE_AGENT = "not_the_agent"
    NOTED = "noted"


@dataclass(frozen=True, slots=True)
class Failure:
    """Holds what the breaker looks at in a protocol. `successes_before`: since the counted failure before
    it."""

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
        """Resets as a success does, and a person who enables the setting."""
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


# -- what the breaker would have done with another limit: its rule over stored failures ----------------------
# Pure.


@dataclass(frozen=True, slots=True)
class Stored:
    """A failure and where it happened."""

    failure: Failure
    activation: UUID
    server: str


@dataclass(frozen=True, slots=True)
class WouldTrip:
    """The setting would have been switched off here. `servers`: who had given it up, this one last."""

    at: datetime
    reason: TripReason
    exception_type: str
    servers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """`alone`: times a server would have given the setting up without switching it off everywhere."""

    trips: tuple[WouldTrip, ...] = ()
    alone: int = 0
    failures: int = 0


@dataclass
class _Life:
    """One activation between two trips: a tally per server, and who gave it up."""

    tallies: dict[str, Tally] = field(default_factory=dict)
    given_up: list[str] = field(default_factory=list)


class BackTest:
    """The breaker with one limit, fed with failures in the order in which they occurred.

    `quorums`: by activation, how many servers must give the setting up (1 unless told). After a trip somebody
    is taken to have enabled the setting at once: every count begins at 0. A server that gave it up alone
    counts no more in that activation, as it would not have run.
    """

    def __init__(
        self, m: int, *, count_once: bool = False, quorums: Mapping[UUID, int] | None = None
    ) -> None:
        self._m, self._once, self._quorums = m, count_once, quorums or {}
        self._lives: dict[UUID, _Life] = {}
        self._trips: list[WouldTrip] = []
        self._alone = self._failures = 0

    def add(self, stored: Stored) -> None:
        self._failures += 1
        life = self._lives.setdefault(stored.activation, _Life())
        if stored.server in life.given_up:
            return
        tally = life.tallies.get(stored.server)
        if tally is None:
            tally = life.tallies[stored.server] = Tally(self._m, count_once=self._once)
        step = tally.add(stored.failure)
        if step.trip is None:
            return
        life.given_up.append(stored.server)
        if len(life.given_up) < self._quorums.get(stored.activation, 1):
            self._alone += 1
        else:
            self._switch_off(life, step)

    def answer(self) -> Answer:
        return Answer(tuple(self._trips), self._alone, self._failures)

    def _switch_off(self, life: _Life, step: Step) -> None:
        # Those who gave it up before were not alone after all.
        self._alone -= len(life.given_up) - 1
        exception = step.failure.exception_type if step.trip is TripReason.SAME_TYPE else ""
        assert step.trip is not None
        self._trips.append(WouldTrip(step.failure.at, step.trip, exception, tuple(life.given_up)))
        for tally in life.tallies.values():
            tally.reset()
        life.given_up.clear()


def what_if(
    failures: Iterable[Stored], m: int, *, count_once: bool = False, quorums: Mapping[UUID, int] | None = None
) -> Answer:
    back_test = BackTest(m, count_once=count_once, quorums=quorums)
    for stored in failures:
        back_test.add(stored)
    return back_test.answer()
