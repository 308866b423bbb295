"""One server of MANY gave up, and the others cannot go on: a minute later nobody is left who could say
otherwise."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from agents.models import BreakerTrip, Duty, LaunchSetting, OfferedAgent, Pool, Run, Server
from agents.reconciler import tend
from agents.servers.operations import set_duty
from tests.web.rows import NOW, make_alive, make_setting
from tests.web.test_breaker_trips import give_up, is_on, started

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db(transaction=True)]


@pytest.fixture(autouse=True)
def alive(server: Server, second_server: Server) -> None:
    make_alive(server, second_server, now=NOW)


@pytest.fixture
def many(pool: Pool) -> LaunchSetting:
    return make_setting(pool, spread="MANY")


def drained(server: Server) -> None:
    set_duty(server, Duty.DRAINING, None, NOW)


def cordoned_without_a_run(server: Server) -> None:
    Run.objects.filter(server=server).delete()
    set_duty(server, Duty.CORDONED, None, NOW)


def without_the_agent(server: Server) -> None:
    OfferedAgent.objects.filter(server=server).delete()


def out_of_the_pool(server: Server) -> None:
    Pool.objects.get().servers.remove(server)


def seconds_later(seconds: int) -> None:
    """Both servers are heard all the time."""
    Server.objects.update(last_seen_at=NOW + timedelta(seconds=seconds))
    tend(NOW + timedelta(seconds=seconds))


@pytest.mark.parametrize("away", [drained, cordoned_without_a_run, without_the_agent, out_of_the_pool])
def test_a_server_that_is_heard_but_cannot_run_it_counts_for_a_minute(
    many: LaunchSetting, second_server: Server, away: Callable[[Server], None]
) -> None:
    runs = started(many)
    away(second_server)
    tend(NOW)

    give_up(runs["srv-1"])
    seconds_later(2)
    seconds_later(59)
    assert is_on(many)
    seconds_later(60)

    assert not is_on(many)
    assert BreakerTrip.objects.get().quorum == {
        "needed": 2, "interrupted": ["srv-1"], "live": [], "rule": "all_there_are",
    }  # fmt: skip


def test_a_healthy_server_that_is_taken_out_after_the_other_gave_up_counts_for_a_minute(
    many: LaunchSetting,
) -> None:
    runs = started(many)
    give_up(runs["srv-1"])
    seconds_later(30)
    out_of_the_pool(runs["srv-2"].server)

    seconds_later(32)
    assert is_on(many)
    seconds_later(60)
    assert not is_on(many)


def test_a_cordoned_server_goes_on_with_its_run_and_counts(
    many: LaunchSetting, second_server: Server
) -> None:
    runs = started(many)
    set_duty(second_server, Duty.CORDONED, None, NOW)
    give_up(runs["srv-1"])

    seconds_later(600)

    assert is_on(many)


def test_the_only_server_of_a_pool_is_all_there_is_at_once(
    many: LaunchSetting, pool: Pool, server: Server
) -> None:
    pool.servers.set([server])
    (run,) = started(many).values()

    give_up(run)

    assert not is_on(many)
