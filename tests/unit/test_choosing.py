"""Which servers run an activation."""

from typing import Any

import pytest

from agents.activations.rules.placement import Blocker, Candidate, Current, Plan, plan_any, plan_many


def candidate(
    server: int,
    *,
    alive: bool = True,
    offers: bool = True,
    load: int = 0,
    lost: bool | None = None,
    **more: bool,
) -> Candidate:
    lost = not alive if lost is None else lost
    return Candidate(
        server=server, name=f"srv-{server}", alive=alive, offers=offers, load=load, lost=lost, **more
    )


def test_any_starts_on_the_able_server_with_the_fewest_runs() -> None:
    candidates = [
        candidate(1, load=2),
        candidate(2, load=1),
        candidate(3, offers=False),
        candidate(4, alive=False),
    ]

    assert plan_any(candidates, []) == Plan(start=(2,))


def test_any_breaks_ties_by_name() -> None:
    assert plan_any([candidate(2), candidate(1)], []) == Plan(start=(1,))


def test_any_stays_where_it_runs() -> None:
    assert plan_any([candidate(1, load=9), candidate(2)], [Current(run=7, server=1)]) == Plan()


def test_any_waits_for_a_server_whose_silence_does_not_count_yet() -> None:
    assert (
        plan_any([candidate(1, alive=False, lost=False), candidate(2)], [Current(run=7, server=1)]) == Plan()
    )


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
    assert plan_any([], []).waiting is Blocker.NO_SERVER
    assert plan_any([candidate(1, alive=False)], []).waiting is Blocker.NONE_ALIVE
    assert plan_any([candidate(1, offers=False)], []).waiting is Blocker.NONE_OFFERS


def test_many_starts_on_every_able_server_that_has_no_run() -> None:
    candidates = [candidate(1), candidate(2), candidate(3), candidate(4, alive=False)]

    assert plan_many(candidates, [Current(run=7, server=1)]) == Plan(start=(2, 3))


def test_many_keeps_the_run_of_a_silent_server_and_withdraws_from_one_that_left() -> None:
    plan = plan_many([candidate(1, alive=False)], [Current(run=7, server=1), Current(run=8, server=5)])

    assert plan == Plan(withdraw=(8,))


def test_many_without_an_able_server_says_why_it_waits() -> None:
    assert plan_many([candidate(1, alive=False)], []).waiting is Blocker.NONE_ALIVE


def test_a_run_that_is_over_is_not_begun_again_anywhere_by_any_and_not_there_by_many() -> None:
    over = [Current(run=7, server=1, over=True)]

    assert plan_any([candidate(1, alive=False), candidate(2)], over) == Plan()
    assert plan_many([candidate(1), candidate(2)], over) == Plan(start=(2,))


def test_without_a_fence_nothing_begins_while_a_run_is_leaving() -> None:
    assert plan_any([candidate(1)], [], fenced=False, leaving=True).waiting is Blocker.STOPPING
    moving = plan_any([candidate(2)], [Current(run=7, server=1)], fenced=False)
    assert moving == Plan(withdraw=(7,), waiting=Blocker.STOPPING)
    lost = plan_any([candidate(1, alive=False), candidate(2)], [Current(run=7, server=1)], fenced=False)
    assert lost == Plan(start=(2,), lose=(7,))


def test_of_several_runs_of_any_the_newest_stays() -> None:
    current = [Current(run=7, server=1), Current(run=9, server=2)]

    assert plan_any([candidate(1), candidate(2)], current) == Plan(withdraw=(7,))


UNABLE: list[dict[str, Any]] = [
    {"alive": False},
    {"offers": False},
    {"cordoned": True},
    {"draining": True},
    {"obeys": False},
]


@pytest.mark.parametrize("unable", UNABLE)
def test_nothing_begins_on_a_server_that_is_not_able(unable: dict[str, Any]) -> None:
    assert plan_any([candidate(1, **unable), candidate(2, load=9)], []).start == (2,)
    assert plan_many([candidate(1, **unable), candidate(2)], []) == Plan(start=(2,))


def test_a_server_of_which_only_the_necessary_is_known_is_able_and_not_lost() -> None:
    known = Candidate(server=1, name="srv-1", alive=True, offers=True, load=0)
    assert known == candidate(1, cordoned=False, draining=False, obeys=True)
    assert Current(run=7, server=1) == Current(run=7, server=1, over=False)


def test_a_run_leaves_a_draining_server_as_soon_as_another_one_is_able() -> None:
    here, draining = [Current(run=7, server=1)], candidate(1, draining=True)

    assert plan_any([draining, candidate(2)], here) == Plan(start=(2,), withdraw=(7,))
    assert plan_any([draining, candidate(2, cordoned=True)], here) == Plan()
    silent = candidate(1, alive=False, lost=False, draining=True)
    assert plan_any([silent, candidate(2)], here) == Plan(), "its silence does not count yet"
    assert plan_many([draining, candidate(2)], here) == Plan(start=(2,), withdraw=(7,))


def test_many_withdraws_nothing_that_is_over() -> None:
    over = [Current(run=7, server=1, over=True), Current(run=8, server=5, over=True)]

    assert plan_many([candidate(1, draining=True)], over) == Plan()


@pytest.mark.parametrize(
    ("candidates", "waiting"),
    [
        ([], Blocker.NO_SERVER),
        ([candidate(1, alive=False), candidate(2, alive=False)], Blocker.NONE_ALIVE),
        ([candidate(1, alive=False), candidate(2, offers=False)], Blocker.NONE_OFFERS),
        ([candidate(1, cordoned=True), candidate(2, offers=False)], Blocker.CORDONED),
        ([candidate(1, draining=True)], Blocker.CORDONED),
        ([candidate(1, obeys=False), candidate(2, offers=False)], Blocker.DISOBEYING),
        ([candidate(1, obeys=False), candidate(2, cordoned=True)], Blocker.CORDONED),
    ],
)
def test_why_nothing_can_begin(candidates: list[Candidate], waiting: Blocker) -> None:
    assert plan_any(candidates, []) == Plan(waiting=waiting)
    assert plan_any(candidates, [Current(run=7, server=9)]) == Plan(withdraw=(7,), waiting=waiting)
    assert plan_many(candidates, []) == Plan(waiting=waiting)
    assert plan_many(candidates, [Current(run=7, server=9)]) == Plan(withdraw=(7,), waiting=waiting)


def test_many_waits_for_nothing_while_it_runs_somewhere() -> None:
    assert plan_many([candidate(1, cordoned=True)], [Current(run=7, server=1)]) == Plan()


def test_without_a_fence_nothing_begins_beside_what_may_still_run() -> None:
    able = candidate(3)
    lost, gone, unable = candidate(1, alive=False), Current(run=8, server=5), candidate(2, offers=False)
    runs = [Current(run=7, server=1), gone, Current(run=9, server=2)]

    assert plan_any([lost, unable, able], runs) == Plan(start=(3,), lose=(7,), withdraw=(8, 9))
    unfenced = plan_any([lost, unable, able], runs, fenced=False)
    assert unfenced == Plan(lose=(7,), withdraw=(8, 9), waiting=Blocker.STOPPING)
    assert plan_any([unable, able], [runs[2]], fenced=False) == Plan(withdraw=(9,), waiting=Blocker.STOPPING)
    assert plan_any([able], [], leaving=True) == plan_any([able], [], fenced=False) == Plan(start=(3,))


@pytest.mark.parametrize(
    ("plan", "changes"),
    [
        (Plan(), False),
        (Plan(waiting=Blocker.NO_SERVER), False),
        (Plan(start=(1,)), True),
        (Plan(lose=(1,)), True),
        (Plan(withdraw=(1,)), True),
    ],
)
def test_a_plan_changes_what_it_starts_loses_or_withdraws(plan: Plan, changes: bool) -> None:
    assert plan.changes is changes


def test_why_a_setting_waits_has_the_words_that_are_stored() -> None:
    stored = ["", "no_server", "none_alive", "none_offers", "cordoned", "disobeying", "stopping"]
    stored += ["stopped_there"]
    assert [waiting.value for waiting in Blocker] == stored


def test_where_a_person_stopped_it_nothing_begins_and_what_runs_ends() -> None:
    here, stopped = [Current(run=7, server=1)], candidate(1, stopped=True)

    assert plan_many([stopped, candidate(2)], []) == Plan(start=(2,))
    assert plan_many([stopped, candidate(2)], here) == Plan(start=(2,), withdraw=(7,))
    assert plan_any([stopped, candidate(2, load=9)], []) == Plan(start=(2,))
    assert plan_any([stopped, candidate(2)], here) == Plan(start=(2,), withdraw=(7,))
    assert plan_any([stopped, candidate(2)], [*here, Current(run=8, server=2)]) == Plan(withdraw=(7,))


def test_what_is_stopped_ends_also_where_nobody_takes_over() -> None:
    stopped = candidate(1, stopped=True)
    plan = plan_any([stopped, candidate(2, alive=False)], [Current(run=7, server=1)])

    assert plan == Plan(withdraw=(7,), waiting=Blocker.STOPPED_THERE)
    assert plan_many([stopped], []) == Plan(waiting=Blocker.STOPPED_THERE)
    cordoned = candidate(2, cordoned=True)
    assert plan_many([stopped, cordoned], []).waiting is Blocker.CORDONED


def test_a_silent_run_is_withdrawn_where_it_is_stopped_and_never_declared_lost() -> None:
    silent = candidate(1, alive=False, stopped=True)
    plan = plan_any([silent, candidate(2)], [Current(run=7, server=1)], fenced=False)

    assert plan == Plan(withdraw=(7,), waiting=Blocker.STOPPING)


def test_what_a_stopped_server_gave_up_stays_given_up() -> None:
    over = [Current(run=7, server=1, over=True)]

    assert plan_many([candidate(1, stopped=True), candidate(2)], over) == Plan(start=(2,))
