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


def test_a_run_that_is_over_is_not_begun_again_anywhere_by_any_and_not_there_by_many() -> None:
    over = [Current(run=7, server=1, over=True)]

    assert plan_any([candidate(1, alive=False), candidate(2)], over) == Plan()
    assert plan_many([candidate(1), candidate(2)], over) == Plan(start=(2,))


def test_without_a_fence_nothing_begins_while_a_run_is_leaving() -> None:
    assert plan_any([candidate(1)], [], fenced=False, leaving=True).waiting is Waiting.STOPPING
    moving = plan_any([candidate(2)], [Current(run=7, server=1)], fenced=False)
    assert moving == Plan(withdraw=(7,), waiting=Waiting.STOPPING)
    lost = plan_any([candidate(1, alive=False), candidate(2)], [Current(run=7, server=1)], fenced=False)
    assert lost == Plan(start=(2,), lose=(7,))


def test_of_several_runs_of_any_the_newest_stays() -> None:
    current = [Current(run=7, server=1), Current(run=9, server=2)]

    assert plan_any([candidate(1), candidate(2)], current) == Plan(withdraw=(7,))
