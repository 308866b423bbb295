"""After a trip: enabling, resuming one server, one message first."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from agents.activations.operations import start_activation
from agents.breaker.interruption import resume_on_server
from agents.breaker.trip import evaluate_trip
from agents.groups.group import enable_group, run_group_now
from agents.heartbeat.desired import desired_state
from agents.heartbeat.heartbeats import accept_heartbeat
from agents.models import (
    Activation,
    BreakerTrip,
    GroupMember,
    LaunchSetting,
    Pool,
    Run,
    ScheduledGroup,
    Server,
    StateChange,
    Trigger,
)
from agents.reconciler import tend
from agents.settings.enable import disable_setting, enable_setting
from alerts.models import NoticeTarget
from console.operations.refusals import Refused
from console.reasons import said
from contract.messages import RunReport
from contract.records import BreakerCounts, RunState
from failures.intake.batch import accept_batch
from tests.web import reports
from tests.web.reports import Spool
from tests.web.rows import NOW, activate, heartbeat, make_alive, make_setting
from tests.web.test_breaker_trips import give_up, is_on, started

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db(transaction=True)]
LATER = NOW + timedelta(seconds=10)


@pytest.fixture(autouse=True)
def alive(server: Server, second_server: Server) -> None:
    make_alive(server, second_server, now=NOW)


@pytest.fixture
def many(pool: Pool) -> LaunchSetting:
    return make_setting(pool, spread="MANY")


@pytest.fixture
def tried(pool: Pool) -> LaunchSetting:
    return make_setting(pool, spread="MANY", try_one_first=True)


def say(run: Run, state: RunState = RunState.RUNNING, **more: Any) -> None:
    report = RunReport(run.activation_id, run.epoch, run.activation.setting.key, state, **more)
    accept_heartbeat(run.server, heartbeat(run.server.name, report), LATER)


# -- resuming ------------------------------------------------------------------------------------------------


def test_a_server_that_gave_up_alone_goes_on_with_a_higher_epoch(many: LaunchSetting, operator: User) -> None:
    run = started(many)["srv-1"]
    give_up(run)

    resumed = resume_on_server(many, run.server, operator, LATER)

    assert (resumed.activation_id, resumed.server, resumed.wanted) == (run.activation_id, run.server, True)
    assert resumed.epoch > max(2, run.epoch)
    (desired,) = desired_state(run.server).runs
    assert (desired.epoch, desired.carried_counts) == (resumed.epoch, None)
    row = StateChange.objects.get(what="run", old="interrupted")
    assert (row.by, row.server) == (operator, run.server)
    assert evaluate_trip(run.activation_id, LATER) is None
    give_up(resumed)
    assert is_on(many)


def test_after_resuming_one_the_other_alone_is_not_enough(many: LaunchSetting) -> None:
    runs = started(many)
    give_up(runs["srv-1"])
    resume_on_server(many, runs["srv-1"].server, None, LATER)

    give_up(runs["srv-2"])

    assert is_on(many)


def test_only_what_was_given_up_can_be_resumed_and_only_once(many: LaunchSetting) -> None:
    runs = started(many)
    with pytest.raises(Refused) as refused:
        resume_on_server(many, runs["srv-1"].server, None, LATER)
    assert refused.value.code == "not_interrupted"

    give_up(runs["srv-1"])
    resume_on_server(many, runs["srv-1"].server, None, LATER)
    with pytest.raises(Refused):
        resume_on_server(many, runs["srv-1"].server, None, LATER)
    assert Run.objects.filter(server=runs["srv-1"].server).count() == 2


@pytest.mark.parametrize(
    ("case", "code"), [("off", "not_running"), ("pool", "not_in_pool"), ("duty", "not_in_service")]
)
def test_resuming_is_refused_with_the_reason(many: LaunchSetting, pool: Pool, case: str, code: str) -> None:
    run = started(many)["srv-1"]
    give_up(run)
    if case == "off":
        disable_setting(many, None, said(""), LATER)
    elif case == "pool":
        pool.servers.remove(run.server)
    else:
        Server.objects.filter(pk=run.server_id).update(duty="cordoned")
        run.server.refresh_from_db()

    with pytest.raises(Refused) as refused:
        resume_on_server(many, run.server, None, LATER)

    assert refused.value.code == code


# -- enabling ------------------------------------------------------------------------------------------------


def test_enabling_ends_the_trip_and_begins_anew(setting: LaunchSetting, operator: User) -> None:
    (run,) = started(setting).values()
    give_up(run)

    activation = activate(setting, operator, LATER)

    trip = BreakerTrip.objects.get()
    assert (trip.ended_at, trip.ended_by) == (LATER, operator)
    assert activation.pk != run.activation_id
    fresh = activation.runs.get()
    assert (fresh.any_count, fresh.epoch) == (0, 1)
    give_up(fresh, at=LATER)
    assert BreakerTrip.objects.count() == 2
    assert BreakerTrip.objects.filter(ended_at=None).count() == 1


def test_a_late_word_of_the_activation_before_does_not_switch_off_the_new_one(setting: LaunchSetting) -> None:
    (run,) = started(setting).values()
    give_up(run)
    enable_setting(setting, None, LATER)

    say(run, RunState.INTERRUPTED)
    tend(LATER)

    assert is_on(setting)


# -- one message first ---------------------------------------------------------------------------------------


def test_one_server_tries_one_message_and_then_all_begin(tried: LaunchSetting) -> None:
    (run,) = started(tried).values()
    tend(NOW)
    assert Run.objects.count() == 1
    (desired,) = desired_state(run.server).runs
    assert desired.trial_first

    say(run, handled=0, failed=0)
    assert Run.objects.count() == 1
    say(run, handled=1)

    assert Run.objects.filter(wanted=True).count() == 2
    assert [each.trial_first for server in Server.objects.all() for each in desired_state(server).runs] == [
        False
    ] * 2


def test_a_failed_try_switches_off_at_once_under_the_same_trip(tried: LaunchSetting) -> None:
    LaunchSetting.objects.update(try_one_first=False)
    runs = started(tried)
    give_up(runs["srv-1"])
    give_up(runs["srv-2"])
    LaunchSetting.objects.update(try_one_first=True)
    activation = activate(tried, None, LATER)

    give_up(activation.runs.get(), at=LATER, reason="trial")

    trip = BreakerTrip.objects.get()
    assert not is_on(tried)
    assert (trip.ended_at, trip.ended_by, trip.reopened, trip.activation) == (None, None, 1, activation)
    assert [effect["what"] for effect in trip.effects] == ["setting_disabled"] * 2
    assert trip.interruptions.count() == 3


def test_who_was_added_since_is_told_when_the_trip_is_opened_again(
    tried: LaunchSetting, viewer: User, client: Client
) -> None:
    client.force_login(viewer)
    told = NoticeTarget.objects.create(setting=tried, channel="webhook", address="http://127.0.0.1:1/a/")
    LaunchSetting.objects.update(try_one_first=False)
    runs = started(tried)
    give_up(runs["srv-1"])
    give_up(runs["srv-2"])
    trip = BreakerTrip.objects.get()
    added = NoticeTarget.objects.create(pool=tried.pool, channel="webhook", address="http://127.0.0.1:1/b/")
    assert (
        "1 recipient was added later and will be notified if this trip is reopened or another trip occurs."
    ) in client.get(f"/trips/{trip.pk}/").content.decode()
    LaunchSetting.objects.update(try_one_first=True)
    activation = activate(tried, None, LATER)

    give_up(activation.runs.get(), at=LATER, reason="trial")

    assert [notice.target for notice in trip.notices.order_by("pk")] == [told, added]
    trip.refresh_from_db()
    assert [effect["what"] for effect in trip.effects].count("notice") == 2
    assert (
        "recipient was added later and will be notified if this trip is reopened or another trip occurs."
        not in client.get(f"/trips/{trip.pk}/").content.decode()
    )


@pytest.mark.parametrize(
    ("field", "chosen", "tries"), [(False, True, True), (True, False, False), (True, None, True)]
)
def test_whoever_enables_chooses_for_this_enabling_alone(
    pool: Pool, field: bool, chosen: bool | None, tries: bool
) -> None:
    asap = make_setting(pool, try_one_first=field)
    delayed = make_setting(pool, key="nightly", timing="DELAYED", try_one_first=field)

    activation = activate(asap, None, LATER, try_one_first=chosen)
    enable_setting(delayed, None, LATER, try_one_first=chosen)
    begun = start_activation(delayed, Trigger.PERSON, None, LATER)

    assert activation is not None
    assert (activation.trial, begun.trial) == (tries, tries)
    disable_setting(asap, None, said(""), LATER)
    Activation.objects.filter(pk=activation.pk).update(ended_at=LATER)
    again = enable_setting(asap, None, LATER + timedelta(seconds=1))
    assert again is not None and again.trial == field


def test_a_failed_try_without_a_trip_before_makes_one(tried: LaunchSetting) -> None:
    (run,) = started(tried).values()

    give_up(run, reason="trial")

    trip = BreakerTrip.objects.get()
    assert (trip.reason, trip.reopened, trip.quorum["rule"]) == ("trial", 0, "trial")


def test_a_run_that_gave_up_after_its_first_success_tried_well(tried: LaunchSetting) -> None:
    (run,) = started(tried).values()

    give_up(run, reason="same_type")

    assert is_on(tried)
    assert not Activation.objects.get().trial
    assert Run.objects.get(wanted=True).server.name == "srv-2"


# -- groups --------------------------------------------------------------------------------------------------


def test_the_trip_of_a_member_switches_the_whole_group_off(pool: Pool) -> None:
    group = ScheduledGroup.objects.create(name="night")
    members = [
        make_setting(pool, key=key, timing="DELAYED", address=f"t.{key}") for key in ("first", "second")
    ]
    for position, member in enumerate(members, start=1):
        GroupMember.objects.create(group=group, setting=member, position=position)
    enable_group(group, None, NOW)
    run_group_now(group, None, NOW)
    run = Run.objects.get()

    give_up(run)

    group.refresh_from_db()
    trip = BreakerTrip.objects.get()
    assert (group.enabled, is_on(members[0]), is_on(members[1]), trip.group) == (False, False, False, group)
    assert [(effect["what"], effect["name"]) for effect in trip.effects] == [
        ("setting_disabled", "first"), ("group_disabled", "night"), ("member_disabled", "second"),
    ]  # fmt: skip
    assert "first" in str(group.disabled_reason)
    enable_group(group, None, LATER)
    trip.refresh_from_db()
    assert trip.ended_at == LATER


# -- carried counts ------------------------------------------------------------------------------------------


def close_with(activation: Activation, at: datetime, counts: BreakerCounts) -> None:
    """Its runs have ended with these counts, each on its server."""
    for run in activation.runs.select_related("server", "activation__setting"):
        closing = reports.closing(reports.run_of(run), records=0, handled=0, failed=0, counts=counts)
        accept_batch(run.server, Spool(run.server.name).batch(closing), at)


def carried(activation: Activation) -> dict[str, BreakerCounts | None]:
    found = {}
    for server in Server.objects.all():
        for desired in desired_state(server).runs:
            assert desired.activation == activation.pk
            found[server.name] = desired.carried_counts
    return found


COUNTS = BreakerCounts("builtins.KeyError", 2, 4, ("0123456789abcdef",))


def test_the_next_activation_of_any_goes_on_counting_wherever_it_runs(
    pool: Pool, second_server: Server
) -> None:
    setting = make_setting(pool, timing="DELAYED")
    enable_setting(setting, None, NOW)
    first = start_activation(setting, Trigger.PERSON, None, NOW)
    assert carried(first) == {"srv-1": None}
    close_with(first, LATER, COUNTS)
    pool.servers.set([second_server])

    second = start_activation(setting, Trigger.PERSON, None, LATER)

    assert carried(second) == {"srv-2": COUNTS}
    close_with(second, LATER, BreakerCounts())
    third = start_activation(setting, Trigger.PERSON, None, LATER + timedelta(seconds=1))
    assert carried(third) == {"srv-2": None}


def test_each_server_of_many_goes_on_with_its_own_count(pool: Pool, second_server: Server) -> None:
    setting = make_setting(pool, timing="DELAYED", spread="MANY")
    enable_setting(setting, None, NOW)
    first = start_activation(setting, Trigger.PERSON, None, NOW)
    pool.servers.set([second_server])
    close_with(first, LATER, COUNTS)
    Run.objects.filter(server=second_server).update(any_count=1)
    pool.servers.add(Server.objects.get(name="srv-1"))

    second = start_activation(setting, Trigger.PERSON, None, LATER)

    assert carried(second) == {"srv-1": COUNTS, "srv-2": replace(COUNTS, any=1)}


def test_enabling_forgives_what_was_counted(pool: Pool) -> None:
    setting = make_setting(pool, timing="DELAYED")
    enable_setting(setting, None, NOW)
    close_with(start_activation(setting, Trigger.PERSON, None, NOW), LATER, COUNTS)
    disable_setting(setting, None, said(""), LATER)
    enable_setting(setting, None, LATER)

    assert carried(start_activation(setting, Trigger.PERSON, None, LATER)) == {"srv-1": None}


def test_what_runs_as_soon_as_possible_carries_nothing(setting: LaunchSetting) -> None:
    (run,) = started(setting).values()
    say(run, counts=COUNTS)
    assert carried(run.activation) == {"srv-1": None}
