"""Which servers run an activation, against what the specification says in other words, over arbitrary
pools."""

from hypothesis import given, settings
from hypothesis import strategies as st

from agents.activations.rules.placement import Candidate, Current, plan_any, plan_many

BOUNDED = settings(max_examples=200, deadline=None, derandomize=True, database=None)


@st.composite
def pools(draw: st.DrawFn) -> tuple[list[Candidate], list[Current]]:
    """Servers in any condition, and runs on some of them or on servers that left."""
    candidates = []
    for server in range(draw(st.integers(0, 4))):
        alive = draw(st.booleans())
        condition = {name: draw(st.booleans()) for name in ("offers", "cordoned", "draining", "stopped")}
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
    stopped = {run.run for run in current if run.server in known and known[run.server].stopped}
    assert stopped <= {*plan.withdraw} or any(run.over for run in current), "it ends where it was stopped"
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
