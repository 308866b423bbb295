"""Two interruptions in the same instant, from connections of their own, make exactly one trip."""

from collections.abc import Callable
from typing import Any

import pytest

from agents.breaker.interruption import resume_on_server
from agents.breaker.trip import evaluate_trip
from agents.models import BreakerTrip, LaunchSetting, Pool, Run, Server, StateChange
from agents.settings.enable import disable_setting
from alerts.models import Notice, NoticeTarget
from console.operations.refusals import Refused
from console.reasons import said
from failures.intake.batch import accept_batch
from tests.web import reports
from tests.web.reports import Spool
from tests.web.rows import NOW, make_alive, make_setting
from tests.web.test_breaker_trips import give_up, is_on, started
from tests.web.test_failures_intake_at_once import at_once

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db(transaction=True)]
ROUNDS = range(3)


@pytest.fixture
def many(pool: Pool, server: Server, second_server: Server) -> LaunchSetting:
    third = Server.objects.create(name="srv-3")
    pool.servers.add(third)
    make_alive(server, second_server, third, now=NOW)
    return make_setting(pool, spread="MANY")


def reporting(run: Run) -> Callable[[], Any]:
    """Takes what the KMA of the run reports: failures, then that it gave up."""
    of = reports.run_of(run)
    batch = Spool(run.server.name).batch(*[reports.protocol(of)] * 5, reports.interruption(of))
    return lambda: accept_batch(run.server, batch, NOW)


@pytest.mark.parametrize("_round", ROUNDS)
def test_two_servers_that_give_up_at_once_make_one_trip(many: LaunchSetting, pool: Pool, _round: int) -> None:
    NoticeTarget.objects.create(pool=pool, channel="webhook", address="http://127.0.0.1:9/", secret="s")
    runs = started(many)

    at_once(reporting(runs["srv-1"]), reporting(runs["srv-2"]))

    trip = BreakerTrip.objects.get()
    assert not is_on(many)
    assert trip.quorum["interrupted"] == ["srv-1", "srv-2"]
    assert trip.interruptions.count() == 2
    assert Notice.objects.count() == 1
    assert StateChange.objects.filter(what="setting", new="disabled").count() == 1
    assert not Run.objects.filter(wanted=True).exists()


@pytest.mark.parametrize("_round", ROUNDS)
def test_three_looks_at_the_same_evidence_make_one_trip(many: LaunchSetting, _round: int) -> None:
    runs = started(many)
    Run.objects.filter(server__name__in=("srv-1", "srv-2")).update(state="interrupted", wanted=False)

    trips = at_once(*[lambda: evaluate_trip(runs["srv-1"].activation_id, NOW)] * 3)

    assert sum(trip is not None for trip in trips) == 1
    assert BreakerTrip.objects.count() == 1


@pytest.mark.parametrize("_round", ROUNDS)
def test_a_person_and_a_trip_that_switch_off_at_once_leave_it_off(
    setting: LaunchSetting, _round: int
) -> None:
    make_alive(*Server.objects.all(), now=NOW)
    (run,) = started(setting).values()

    at_once(reporting(run), lambda: disable_setting(setting, None, said("manually"), NOW))

    assert not is_on(setting)
    assert StateChange.objects.filter(what="setting", new="disabled").count() == 1
    assert not Run.objects.filter(wanted=True).exists()


@pytest.mark.parametrize("_round", ROUNDS)
def test_two_people_who_resume_at_once_start_one_run(many: LaunchSetting, _round: int) -> None:
    run = started(many)["srv-1"]
    give_up(run)

    def resume() -> Run | None:
        try:
            return resume_on_server(many, run.server, None, NOW)
        except Refused:
            return None

    resumed = at_once(resume, resume)

    assert sum(each is not None for each in resumed) == 1
    assert Run.objects.filter(server=run.server).count() == 2


@pytest.mark.parametrize("_round", ROUNDS)
def test_resuming_one_while_another_gives_up_ends_in_one_of_the_two_orders(
    many: LaunchSetting, _round: int
) -> None:
    runs = started(many)
    give_up(runs["srv-1"])

    def resume() -> Run | None:
        try:
            return resume_on_server(many, runs["srv-1"].server, None, NOW)
        except Refused:
            return None

    resumed, _ = at_once(resume, reporting(runs["srv-2"]))

    wanted = set(Run.objects.filter(wanted=True).values_list("server__name", flat=True))
    if is_on(many):
        assert resumed is not None
        assert wanted == {"srv-1", "srv-3"}
    else:
        assert BreakerTrip.objects.count() == 1
        assert wanted == set()
