"""The breaker of one run over kills at any moment: nothing that is on disk is forgotten, nothing is made
up."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.breaker import Counts, mark
from contract.messages import MAX_EVIDENCE
from contract.outcomes import RULES, Outcome
from contract.records import BreakerCounts, Interruption, MessageIdentity, RecordRun
from kma.delivery.breaker import RunBreaker, after_kill, final_counts, first_carried, reported_counts
from kma.spool.journal import Totals
from kma.spool.ledger import CarriedCounts
from tests.kma.fakes import wanted

NOW = datetime(2026, 11, 1, tzinfo=UTC)
DESIRED = wanted(max_failures=12, count_message_once=True)
RUN = RecordRun(DESIRED.setting, DESIRED.activation, DESIRED.epoch, "srv-1", DESIRED.agent)


@dataclass(frozen=True)
class Ending:
    """`kill`: the container dies before anything of it is kept, right after its transaction, or after all of
    it. `recorded`: a success with a record (a recovery), which is stored in a transaction too."""

    outcome: Outcome
    kind: str
    key: str
    recorded: bool
    kill: str


class Container:
    """The disk as a run keeps it: a transaction where there is a record, then the journal's totals."""

    def __init__(self) -> None:
        self.disk, self.totals = CarriedCounts(), Totals()
        self.die()

    def take(self, ending: Ending, record: UUID) -> Interruption | None:
        found = told(self.counting, ending, record)
        if ending.kill == "before":
            return None
        if ending.recorded or RULES[ending.outcome].protocol:
            self.disk = self.counting.carried()
        if ending.kill != "between":
            self.totals = Totals(successes=self.counting.successes, since=self.counting.failures)
        return found

    def die(self) -> None:
        carried = after_kill(self.disk, self.totals)
        self.counting = RunBreaker(RUN, DESIRED, first_carried(carried, DESIRED))
        self.disk = self.counting.carried()
        self.totals = Totals(successes=self.counting.successes, since=self.counting.failures)


def told(counting: RunBreaker, ending: Ending, record: UUID) -> Interruption | None:
    if ending.outcome is Outcome.RETURNED:
        counting.succeeded()
        return None
    return counting.failed(ending.outcome, ending.kind, record, NOW, MessageIdentity(key=ending.key))


endings = st.builds(
    Ending,
    st.sampled_from(
        [Outcome.RETURNED, Outcome.RAISED, Outcome.RAISED, Outcome.TEMPORARY, Outcome.CHILD_DIED]
    ),
    st.sampled_from(["A", "B"]),
    st.sampled_from("pqrstu"),
    st.booleans(),
    st.sampled_from(["", "", "", "before", "between", "after"]),
)


@given(st.lists(endings, max_size=40))
def test_a_run_that_is_killed_counts_like_one_that_never_was_without_what_was_lost(
    history: list[Ending],
) -> None:
    container = Container()
    reference = RunBreaker(RUN, DESIRED, first_carried(CarriedCounts(), DESIRED))
    for number, ending in enumerate(history, start=1):
        stored = ending.recorded or RULES[ending.outcome].protocol
        lost = ending.kill == "before" or (ending.kill == "between" and not stored)
        tripped = container.take(ending, UUID(int=number))
        if not lost:
            expected = told(reference, ending, UUID(int=number))
            assert tripped == expected
        if ending.kill:
            container.die()
        if tripped is not None and not lost:
            return  # such a run is closed
        assert container.counting.carried() == reference.carried()


@given(st.lists(endings, max_size=40))
def test_the_evidence_is_what_counted_in_the_row_that_trips(history: list[Ending]) -> None:
    counting = RunBreaker(RUN, DESIRED, CarriedCounts())
    row: list[UUID] = []
    keys: set[str] = set()
    for number, ending in enumerate(history, start=1):
        record = UUID(int=number)
        found = told(counting, ending, record)
        if ending.outcome is Outcome.RETURNED:
            row, keys = [], set()
        elif ending.outcome is not Outcome.TEMPORARY and ending.key not in keys:
            row.append(record)
            keys.add(ending.key)
        assert list(counting.evidence) == row and counting.counts.any == len(row)
        if found is not None:
            assert list(found.evidence) == row and row[-1] == record
            assert found.counts.same >= 4 or found.counts.any >= 12
            assert counting.failed(Outcome.RAISED, "A", UUID(int=999), NOW) is None, "once per run"
            return
        assert counting.counts.same < 4 and counting.counts.any < 12


def test_on_trial_until_something_went_well_also_over_a_restart() -> None:
    trial = replace(DESIRED, trial_first=True)
    assert (
        RunBreaker(RUN, trial, CarriedCounts()).on_trial
        and not RunBreaker(RUN, trial, CarriedCounts(), handled=1).on_trial
    )
    counting = RunBreaker(RUN, trial, CarriedCounts())
    assert counting.failed(Outcome.TEMPORARY, "T", UUID(int=1), NOW) is None and counting.on_trial
    found = counting.failed(Outcome.RAISED, "A", UUID(int=2), NOW)
    assert found is not None and found.reason == "trial" and found.evidence == (UUID(int=2),)


def failing(counting: RunBreaker, number: int, kind: str = "A", **message: Any) -> Interruption | None:
    return counting.failed(Outcome.RAISED, kind, UUID(int=number), NOW, MessageIdentity(**message))


def test_a_trip_tells_its_run_its_limit_and_its_counts_without_the_marks() -> None:
    counting = RunBreaker(RUN, replace(DESIRED, max_failures=3), CarriedCounts())
    counting.succeeded()
    found = failing(counting, 1, key="p")
    counts = BreakerCounts("A", 1, 1)
    assert found == Interruption(RUN, counts, NOW, "same_type", 3, (UUID(int=1),))
    assert counting.reason == "same_type" and reported_counts(counting.counts) == replace(
        counts, marks=(mark("p"),)
    )
    assert counting.carried() == CarriedCounts(
        0,
        1,
        str(RUN.activation),
        RUN.epoch,
        Counts("A", 1, 1, (mark("p"),)),
        (UUID(int=1),),
        interrupted=True,
    )
    assert failing(counting, 2, key="q") is None, "once per run"
    assert (counting.counts.any, counting.failures, counting.reason) == (2, 2, "same_type")


def test_what_counts_sets_the_successes_to_0_and_what_does_not_leaves_them() -> None:
    counting = RunBreaker(RUN, DESIRED, CarriedCounts(successes=2, failures=5))
    counting.succeeded()
    assert counting.failed(Outcome.TEMPORARY, "T", UUID(int=1), NOW) is None
    assert (counting.successes, counting.failures) == (3, 5)
    failing(counting, 2)
    assert (counting.successes, counting.failures, counting.carried().interrupted) == (0, 6, False)


def test_a_repetition_is_a_failure_without_being_evidence() -> None:
    """A weak key of a first attempt is of another message."""
    counting = RunBreaker(RUN, DESIRED, CarriedCounts())
    for number, attempt in ((1, 1), (2, 1), (3, 2)):
        failing(counting, number, key="p", weak=True, attempt=attempt)
    assert counting.evidence == (UUID(int=1), UUID(int=2)) and (counting.counts.any, counting.failures) == (
        2,
        3,
    )
    each_time = RunBreaker(RUN, replace(DESIRED, count_message_once=False), CarriedCounts())
    for number in (1, 2):
        failing(each_time, number, key="p", attempt=2)
    assert each_time.counts == Counts("A", 2, 2)


def test_the_evidence_is_bounded_and_the_newest_is_in_it() -> None:
    counting = RunBreaker(RUN, replace(DESIRED, max_failures=1000, count_message_once=False), CarriedCounts())
    for number in range(MAX_EVIDENCE + 5):
        failing(counting, number)
    assert counting.evidence == tuple(UUID(int=number) for number in range(5, MAX_EVIDENCE + 5))


def test_a_success_ends_the_row_and_the_trial() -> None:
    trial = replace(DESIRED, trial_first=True)
    counting = RunBreaker(RUN, trial, CarriedCounts(counts=Counts("A", 1, 1), evidence=(UUID(int=1),)))
    counting.succeeded()
    assert not counting.on_trial and counting.carried() == CarriedCounts(1, 0, str(RUN.activation), RUN.epoch)
    assert failing(counting, 2) is None
    tripped = RunBreaker(RUN, trial, CarriedCounts())
    assert failing(tripped, 1) is not None and not tripped.on_trial
    assert not RunBreaker(RUN, DESIRED, CarriedCounts()).on_trial


TOLD = BreakerCounts("B", 1, 2, ("m",))
KEPT = CarriedCounts(
    4, 9, str(DESIRED.activation), DESIRED.epoch, Counts("A", 1, 1, ("m",)), (UUID(int=1),), interrupted=False
)
FRESH = replace(KEPT, epoch=2)
ELSEWHERE = replace(KEPT, activation="another", interrupted=True)


@pytest.mark.parametrize(
    ("stored", "epoch", "told", "begins"),
    [
        (KEPT, 1, None, KEPT),
        (replace(KEPT, interrupted=True), 1, TOLD, replace(KEPT, interrupted=True)),
        (KEPT, 2, None, FRESH),
        (KEPT, 2, TOLD, replace(FRESH, counts=Counts("B", 1, 2, ("m",)), evidence=())),
        (KEPT, 2, BreakerCounts("A", 1, 1), FRESH),  # this server ran last; marks are not told
        (replace(KEPT, interrupted=True), 2, TOLD, replace(FRESH, counts=Counts(), evidence=())),
        (replace(KEPT, interrupted=True), 2, None, replace(FRESH, counts=Counts(), evidence=())),
        (ELSEWHERE, 2, None, replace(FRESH, counts=Counts(), evidence=())),
        (ELSEWHERE, 1, TOLD, replace(KEPT, counts=Counts("B", 1, 2, ("m",)), evidence=())),
        (ELSEWHERE, 2, BreakerCounts("A", 1, 1), FRESH),
    ],
)
def test_what_a_run_begins_with(
    stored: CarriedCounts, epoch: int, told: BreakerCounts | None, begins: CarriedCounts
) -> None:
    assert first_carried(stored, replace(DESIRED, epoch=epoch, carried_counts=told)) == begins


@pytest.mark.parametrize(
    ("totals", "left"),
    [
        (Totals(successes=5, since=9), replace(KEPT, successes=5, counts=Counts(), evidence=())),
        (Totals(successes=4, since=9), KEPT),
        (Totals(successes=5, since=8), KEPT),
        (Totals(successes=5, since=10), KEPT),
    ],
)
def test_the_journal_adds_the_successes_since_the_same_failure(totals: Totals, left: CarriedCounts) -> None:
    assert after_kill(KEPT, totals) == left


def test_the_last_counts_are_those_of_this_run_alone() -> None:
    assert final_counts(KEPT, RUN) == final_counts(KEPT, DESIRED) == BreakerCounts("A", 1, 1, ("m",))
    assert final_counts(replace(KEPT, epoch=2), RUN) is None
    assert final_counts(ELSEWHERE, RUN) is None
