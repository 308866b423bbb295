"""Which servers run an activation."""

from agents.services.choosing import Candidate, Current, Plan, Waiting, plan_any, plan_many


def candidate(
    server: int, *, alive: bool = True, offers: bool = True, load: int = 0, lost: bool | None = None
) -> Candidate:
    lost = not alive if lost is None else lost
    return Candidate(server=server, name=f"srv-{server}", alive=alive, offers=offers, load=load, lost=lost)


def test_any_starts_on_the_able_server_with_the_fewest_runs() -> None:
    candidates = [candidate(1, load=2), candidate(2, load=1), candidate(3, offers=False), candidate(4, alive=False)]

    assert plan_any(candidates, []) == Plan(start=(2,))


def test_any_breaks_ties_by_name() -> None:
    assert plan_any([candidate(2), candidate(1)], []) == Plan(start=(1,))


def test_any_stays_where_it_runs() -> None:
    assert plan_any([candidate(1, load=9), candidate(2)], [Current(run=7, server=1)]) == Plan()


def test_any_waits_for_a_server_whose_silence_does_not_count_yet() -> None:
    assert plan_any([candidate(1, alive=False, lost=False), candidate(2)], [Current(run=7, server=1)]) == Plan()


def test_any_moves_when_its_server_is_lost() -> None:
    plan = plan_any([candidate(1, alive=False), candidate(2)], [Current(run=7, server=1)])

    assert plan == Plan(start=(2,), lose=(7,))


def test_any_on_a_silent_server_stays_wanted_while_nobody_can_take_over() -> None:
    plan = plan_any([candidate(1, alive=False), candidate(2, offers=False)], [Current(run=7, server=1)])

    assert not plan.changes


def test_any_moves_in_order_when_its_server_left_the_pool_or_lost_the_agent() -> None:
    assert plan_any([candidate(2)], [Current(run=7, server=1)]) == Plan(start=(2,), withdraw=(7,))
    unable = [candidate(1, offers=False), candidate(2)]
    assert plan_any(unable, [Current(run=7, server=1)]) == Plan(start=(2,), withdraw=(7,))


def test_any_says_why_it_waits() -> None:
    assert plan_any([], []).waiting is Waiting.NO_SERVER
    assert plan_any([candidate(1, alive=False)], []).waiting is Waiting.NONE_ALIVE
    assert plan_any([candidate(1, offers=False)], []).waiting is Waiting.NONE_OFFERS


def test_many_starts_on_every_able_server_that_has_no_run() -> None:
    candidates = [candidate(1), candidate(2), candidate(3), candidate(4, alive=False)]

    assert plan_many(candidates, [Current(run=7, server=1)]) == Plan(start=(2, 3))


def test_many_keeps_the_run_of_a_silent_server_and_withdraws_from_one_that_left() -> None:
    plan = plan_many([candidate(1, alive=False)], [Current(run=7, server=1), Current(run=8, server=5)])

    assert plan == Plan(withdraw=(8,))


def test_many_without_an_able_server_says_why_it_waits() -> None:
    assert plan_many([candidate(1, alive=False)], []).waiting is Waiting.NONE_ALIVE
