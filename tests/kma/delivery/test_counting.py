"""The breaker of one run over kills at any moment: nothing that is on disk is forgotten, nothing is made up."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from contract.messages import Interruption, MessageIdentity, RecordRun
from contract.outcomes import RULES, Outcome
from kma.counting import Counting, after_kill, first_carried
from kma.journal import Totals
from kma.ledger import Carried
from tests.kma.fakes import wanted

NOW = datetime(2026, 11, 1, tzinfo=UTC)
DESIRED = wanted(breaker_m=12, count_once=True)
RUN = RecordRun(DESIRED.setting, DESIRED.activation, DESIRED.epoch, "srv-1", DESIRED.agent)


@dataclass(frozen=True)
class Ending:
    """`kill`: the container dies before anything of it is kept, right after its transaction, or after all of it.
    `recorded`: a success with a record (a recovery), which is stored in a transaction too."""

    outcome: Outcome
    kind: str
    key: str
    recorded: bool
    kill: str


class Container:
    """The disk as a run keeps it: a transaction where there is a record, then the journal's totals."""

    def __init__(self) -> None:
        self.disk, self.totals = Carried(), Totals()
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
        self.counting = Counting(RUN, DESIRED, first_carried(carried, DESIRED))
        self.disk = self.counting.carried()
        self.totals = Totals(successes=self.counting.successes, since=self.counting.failures)


def told(counting: Counting, ending: Ending, record: UUID) -> Interruption | None:
    if ending.outcome is Outcome.RETURNED:
        counting.succeeded()
        return None
    return counting.failed(ending.outcome, ending.kind, record, NOW, MessageIdentity(key=ending.key))


endings = st.builds(
    Ending,
    st.sampled_from([Outcome.RETURNED, Outcome.RAISED, Outcome.RAISED, Outcome.TEMPORARY, Outcome.CHILD_DIED]),
    st.sampled_from(["A", "B"]),
    st.sampled_from("pqrstu"),
    st.booleans(),
    st.sampled_from(["", "", "", "before", "between", "after"]),
)


@given(st.lists(endings, max_size=40))
def test_a_run_that_is_killed_counts_like_one_that_never_was_without_what_was_lost(history: list[Ending]) -> None:
    container = Container()
    reference = Counting(RUN, DESIRED, first_carried(Carried(), DESIRED))
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
    counting = Counting(RUN, DESIRED, Carried())
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
    trial = replace(DESIRED, try_one_first=True)
    assert Counting(RUN, trial, Carried()).on_trial and not Counting(RUN, trial, Carried(), handled=1).on_trial
    counting = Counting(RUN, trial, Carried())
    assert counting.failed(Outcome.TEMPORARY, "T", UUID(int=1), NOW) is None and counting.on_trial
    found = counting.failed(Outcome.RAISED, "A", UUID(int=2), NOW)
    assert found is not None and found.reason == "trial" and found.evidence == (UUID(int=2),)
