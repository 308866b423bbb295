"""What belongs to which enabling is known by a counter: clocks of two hosts differ, and one may step back."""

from datetime import timedelta

import pytest

from agents.activations.operations import start_activation
from agents.heartbeat.desired import desired_state
from agents.models import Activation, BreakerTrip, LaunchSetting, Pool, Run, Server, Trigger
from agents.settings.enable import disable_setting, enable_setting
from console.reasons import said
from contract.records import BreakerCounts
from failures.intake.batch import accept_batch
from tests.web import reports
from tests.web.reports import Spool
from tests.web.rows import NOW, make_alive, make_setting
from tests.web.test_breaker_trips import give_up, is_on, started

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db(transaction=True)]
AHEAD = NOW + timedelta(hours=1)


@pytest.fixture(autouse=True)
def alive(server: Server) -> None:
    make_alive(server, now=NOW)


def begin(setting: LaunchSetting, trigger: Trigger, at: int) -> Activation:
    """`at` minutes after NOW, by the clock of who starts it."""
    make_alive(*Server.objects.all(), now=NOW + timedelta(minutes=at))
    return start_activation(setting, trigger, None, NOW + timedelta(minutes=at))


def drained(setting: LaunchSetting, trigger: Trigger, at: int, counts: BreakerCounts) -> Run:
    """A run that started `at` minutes after NOW and ended with these counts."""
    activation = begin(setting, trigger, at)
    run = activation.runs.select_related("server", "activation__setting").get()
    closing = reports.closing(reports.run_of(run), records=0, failed=1, handled=0, counts=counts)
    accept_batch(run.server, Spool().batch(closing), NOW + timedelta(minutes=at))
    return run


def test_an_enabling_by_a_clock_that_was_ahead_keeps_no_interruption_from_tripping(
    setting: LaunchSetting,
) -> None:
    (run,) = started(setting).values()
    LaunchSetting.objects.filter(pk=setting.pk).update(state_since=AHEAD)

    give_up(run)

    assert not is_on(setting)
    assert BreakerTrip.objects.count() == 1


def test_counts_are_carried_in_the_order_of_the_activations_though_the_clock_stepped_back(
    pool: Pool, server: Server
) -> None:
    setting = make_setting(pool, timing="DELAYED")
    enable_setting(setting, None, AHEAD)
    first, second = BreakerCounts("builtins.KeyError", 1, 1), BreakerCounts("builtins.KeyError", 2, 2)
    drained(setting, Trigger.PERSON, 5, first)
    drained(setting, Trigger.SCHEDULE, 3, second)

    begin(setting, Trigger.SCHEDULE, 4)

    (desired,) = desired_state(server).runs
    assert desired.carried_counts == second


def test_what_ran_before_the_enabling_is_forgiven_though_its_clock_was_ahead(
    pool: Pool, server: Server
) -> None:
    setting = make_setting(pool, timing="DELAYED")
    enable_setting(setting, None, NOW)
    drained(setting, Trigger.PERSON, 60, BreakerCounts("builtins.KeyError", 2, 2))
    disable_setting(setting, None, said(""), NOW)
    enable_setting(setting, None, NOW)

    begin(setting, Trigger.PERSON, 61)

    (desired,) = desired_state(server).runs
    assert desired.carried_counts is None


def test_one_message_is_tried_once_per_enabling_though_the_clock_stepped_back(pool: Pool) -> None:
    setting = make_setting(pool, timing="DELAYED", try_one_first=True)
    enable_setting(setting, None, AHEAD)
    tried = drained(setting, Trigger.PERSON, 0, BreakerCounts())
    assert tried.activation.trial
    Activation.objects.update(trial=False)

    again = begin(setting, Trigger.PERSON, 1)

    assert not again.trial
