"""The pure rules of launch control against what the specification says in other words, over arbitrary histories."""

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from agents.models import ActivationState
from agents.services.choosing import Candidate, Current, plan_any, plan_many
from agents.services.group_order import Decision, MemberFacts, Step, next_step
from agents.services.quorum import Facts, decide
from contract.breaker import Counts, TripReason, count, same_limit, trips
from contract.outcomes import Outcome

BOUNDED = settings(max_examples=200, deadline=None, derandomize=True, database=None)

# -- breaker ----------------------------------------------------------------------------------------------------------

endings = st.lists(st.sampled_from(("ok", "temporary", "stopped", "A", "B", "C")), max_size=40)
OUTCOMES = {"ok": Outcome.RETURNED, "temporary": Outcome.TEMPORARY, "stopped": Outcome.GIVEN_BACK}


@given(endings, st.integers(1, 12))
@BOUNDED
def test_the_breaker_counts_failures_since_the_last_success_and_nothing_else(history: list[str], m: int) -> None:
    counts = Counts()
    for ending in history:
        counts = count(counts, OUTCOMES.get(ending, Outcome.RAISED), ending if ending not in OUTCOMES else "")

    since = history[len(history) - history[::-1].index("ok") :] if "ok" in history else history
    failed = [ending for ending in since if ending not in OUTCOMES]
    alike = 0
    for ending in reversed(failed):
        if ending != failed[-1]:
            break
        alike += 1
    expected = (
        TripReason.SAME_TYPE if alike >= same_limit(m) else TripReason.ANY_TYPE if len(failed) >= m else None
    )  # fmt: skip
    assert trips(counts, m) is expected


# -- quorum -----------------------------------------------------------------------------------------------------------

names = st.sets(st.sampled_from(("a", "b", "c", "d")))


@given(st.booleans(), st.booleans(), names, names, st.booleans())
@BOUNDED
def test_many_is_switched_off_by_two_servers_or_by_all_there_are(
    many: bool, trial: bool, interrupted: set[str], others: set[str], heard: bool
) -> None:
    live = others - interrupted
    found = decide(Facts(many, trial, tuple(interrupted), tuple(live), heard))

    alone = bool(interrupted) and not live and heard
    one_is_enough = bool(interrupted) and (trial or not many)
    assert found.trips is (one_is_enough or len(interrupted) >= 2 or alone)


# -- planner ----------------------------------------------------------------------------------------------------------


@st.composite
def pools(draw: st.DrawFn) -> tuple[list[Candidate], list[Current]]:
    """Servers in any condition, and runs on some of them or on servers that left."""
    candidates = []
    for server in range(draw(st.integers(0, 4))):
        alive = draw(st.booleans())
        condition = {name: draw(st.booleans()) for name in ("offers", "cordoned", "draining")}
        lost = not alive and draw(st.booleans())
        candidates.append(
            Candidate(server, f"srv-{server}", alive, load=draw(st.integers(0, 3)), lost=lost, **condition)
        )
    where = draw(st.sets(st.integers(0, 5), max_size=3))
    return candidates, [Current(100 + server, server, over=draw(st.booleans())) for server in sorted(where)]


@given(pools(), st.booleans(), st.booleans())
@BOUNDED
def test_any_never_begins_beside_a_run_that_stays(
    pool: tuple[list[Candidate], list[Current]], fenced: bool, leaving: bool
) -> None:
    candidates, current = pool
    plan = plan_any(candidates, current, fenced=fenced, leaving=leaving)

    staying = {run.run for run in current} - {*plan.lose, *plan.withdraw}
    assert len(plan.start) <= 1
    assert not (plan.start and staying), "one run is wanted"
    if any(run.over for run in current):
        assert not plan.start, "what was given up is taken up by nobody"
    if not fenced:
        assert not (plan.start and (leaving or plan.withdraw)), "no fence: first the one before ends"
    known = {candidate.server: candidate for candidate in candidates}
    assert all(known[server].able for server in plan.start)
    lost = {run.server for run in current if run.run in plan.lose}
    assert all(not known[server].alive for server in lost)


@given(pools())
@BOUNDED
def test_many_begins_only_where_nothing_is_and_leaves_the_silent_alone(
    pool: tuple[list[Candidate], list[Current]],
) -> None:
    candidates, current = pool
    plan = plan_many(candidates, current)

    assert not plan.lose
    assert not {run.server for run in current} & set(plan.start)
    assert set(plan.start) == {c.server for c in candidates if c.able} - {run.server for run in current}


# -- order in a group -------------------------------------------------------------------------------------------------

WELL = ActivationState.SUCCEEDED
BADLY = (ActivationState.FAILED, ActivationState.INTERRUPTED, ActivationState.STOPPED)


@dataclass
class Passing:
    """What the rows say of one pass; `started` in the order of the starts."""

    plan: tuple[str, ...] = ("first", "second", "third")
    index: int = 0
    over: Step | None = None
    started: list[str] = field(default_factory=list)
    members: dict[str, MemberFacts] = field(default_factory=dict)


class GroupPass(RuleBasedStateMachine):
    """Two processes look and act, each on what it saw; a conditional update of the index lets one of them win."""

    def __init__(self) -> None:
        super().__init__()
        self.rows = Passing()
        self.seen: dict[int, tuple[int, Decision]] = {}

    @rule(process=st.integers(1, 2))
    def look(self, process: int) -> None:
        rows = self.rows
        member = rows.members.get(rows.plan[rows.index]) if rows.index < len(rows.plan) else None
        self.seen[process] = (rows.index, next_step(rows.plan, rows.index, member))

    @rule(process=st.integers(1, 2))
    def act(self, process: int) -> None:
        index, decision = self.seen.pop(process, (-1, Decision(Step.WAIT)))
        rows = self.rows
        if rows.over or index != rows.index or decision.step is Step.WAIT:
            return
        if decision.step is Step.START:
            name = rows.plan[decision.index]
            if name in rows.members:
                return  # one activation of a member in a pass
            rows.index = decision.index
            rows.started.append(name)
            rows.members[name] = MemberFacts(ActivationState.RUNNING, ended=False)
        else:
            rows.over = decision.step

    @rule(state=st.sampled_from((WELL, WELL, *BADLY)))
    def its_runs_close(self, state: ActivationState) -> None:
        """Its state is decided, but records are still under way."""
        for name, member in self.rows.members.items():
            if member.state == ActivationState.RUNNING:
                self.rows.members[name] = MemberFacts(state, ended=False)

    @rule()
    def all_its_records_are_here(self) -> None:
        for name, member in self.rows.members.items():
            if member.state != ActivationState.RUNNING:
                self.rows.members[name] = MemberFacts(member.state, ended=True)

    @invariant()
    def no_member_begins_before_the_one_before_it_finished_well(self) -> None:
        rows = self.rows
        assert rows.started == list(rows.plan[: len(rows.started)]), "in order, each once"
        for name in rows.started[:-1]:
            assert rows.members[name] == MemberFacts(WELL, ended=True), f"after {name}"

    @invariant()
    def the_end_says_how_it_was(self) -> None:
        rows = self.rows
        if rows.over is Step.SUCCEED:
            assert [rows.members[name] for name in rows.plan] == [MemberFacts(WELL, ended=True)] * len(rows.plan)
        if rows.over is Step.FAIL:
            last = rows.members[rows.started[-1]]
            assert last.ended and last.state in BADLY


def test_a_group_keeps_its_order_whoever_looks_when() -> None:
    bounds = settings(max_examples=100, stateful_step_count=40, deadline=None, derandomize=True, database=None)
    run_state_machine_as_test(GroupPass, settings=bounds)
