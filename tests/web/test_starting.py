"""Starts of settings by people, windows and groups, and stops by people."""

from typing import Any

import pytest
from django.core.exceptions import ValidationError

from agents.activations.end import end_activations
from agents.activations.operations import run_now, start_activation, stop_activation
from agents.activations.plan import plan_open_activations
from agents.heartbeat.desired import desired_state
from agents.heartbeat.run_reports import record_outcomes
from agents.models import (
    Activation,
    GroupMember,
    LaunchSetting,
    OfferedAgent,
    Pool,
    Run,
    Schedule,
    ScheduledGroup,
    Server,
    StateChange,
    Trigger,
    Window,
)
from agents.provisioning.topology import save_setting
from agents.settings.enable import disable_setting, enable_setting
from broker.port import Account
from console import broker as broker_service
from console.operations.refusals import Refused
from console.reasons import said
from contract.messages import AgentKind
from contract.records import RunState
from tests.web.reports import closing, run_of
from tests.web.rows import NOW, make_alive, make_setting

pytestmark = pytest.mark.both_databases


@pytest.fixture
def delayed(pool: Pool, server: Server) -> LaunchSetting:
    make_alive(server, now=NOW)
    setting = make_setting(pool, timing="DELAYED", drain_limit_messages=500)
    enable_setting(setting, None, NOW)
    return LaunchSetting.objects.get()


@pytest.fixture
def standalone(pool: Pool, server: Server) -> LaunchSetting:
    make_alive(server, now=NOW)
    OfferedAgent.objects.update(kind="standalone")
    return make_setting(pool, kind="standalone", destination=None)


def end_run(state: RunState, capture: Any) -> Activation:
    """The KMA closes the newest run by itself."""
    run = Run.objects.latest("id")
    with capture(execute=True):
        record_outcomes(run, closing=closing(run_of(run), 0, state=state), now=NOW)
    return run.activation.__class__.objects.get(pk=run.activation_id)


def test_enabling_what_is_started_by_schedule_begins_nothing(delayed: LaunchSetting) -> None:
    assert delayed.enabled
    assert enable_setting(delayed, None, NOW) is None
    assert not Activation.objects.exists()


def test_a_person_starts_it_now(delayed: LaunchSetting, operator: Any) -> None:
    activation = run_now(delayed, operator, NOW)

    assert (activation.trigger, activation.started_by, activation.state) == ("person", operator, "running")
    run = desired_state(Server.objects.get(name="srv-1")).runs[0]
    assert (run.limit_messages, run.kind, run.restart_seconds, run.lease_seconds) == (
        500,
        AgentKind.MESSAGE,
        0,
        0,
    )


def test_one_activation_at_a_time(delayed: LaunchSetting) -> None:
    activation = run_now(delayed, None, NOW)
    assert stop_activation(activation, None, said(""), NOW)
    with pytest.raises(Refused) as refused:
        run_now(delayed, None, NOW)
    assert refused.value.code == "still_running"

    Run.objects.update(state="finished", closed_at=NOW)
    end_activations(NOW)
    assert run_now(delayed, None, NOW) != activation


def test_what_is_disabled_is_not_started(delayed: LaunchSetting) -> None:
    disable_setting(delayed, None, said(""), NOW)
    with pytest.raises(Refused) as refused:
        run_now(delayed, None, NOW)
    assert refused.value.code == "disabled"


def test_what_runs_as_soon_as_possible_is_neither_started_nor_stopped_alone(
    setting: LaunchSetting, server: Server
) -> None:
    make_alive(server, now=NOW)
    activation = enable_setting(setting, None, NOW)
    assert activation is not None
    for act in (
        lambda: run_now(setting, None, NOW),
        lambda: stop_activation(activation, None, said(""), NOW),
    ):
        with pytest.raises(Refused) as refused:
            act()
        assert refused.value.code == "runs_always"


def test_a_member_is_started_by_its_group_only(delayed: LaunchSetting) -> None:
    group = ScheduledGroup.objects.create(name="night")
    GroupMember.objects.create(group=group, setting=delayed, position=1)
    with pytest.raises(Refused, match="“night”"):
        run_now(delayed, None, NOW)


def test_a_window_knows_what_it_started(delayed: LaunchSetting) -> None:
    schedule = Schedule.objects.create(setting=delayed, every_seconds=60)
    window = Window.objects.create(schedule=schedule, due_at=NOW, result="started")
    activation = start_activation(delayed, Trigger.SCHEDULE, None, NOW, window=window)

    assert activation.window == Window.objects.get()


def test_a_stop_takes_the_runs_back_and_keeps_the_setting_enabled(
    delayed: LaunchSetting, operator: Any
) -> None:
    activation = run_now(delayed, operator, NOW)
    assert stop_activation(activation, operator, said("wrong day"), NOW)
    assert desired_state(Server.objects.get(name="srv-1")).runs == ()
    assert not stop_activation(Activation.objects.get(), operator, said("again"), NOW)

    Run.objects.update(state="finished", closed_at=NOW)
    end_activations(NOW)
    assert (Activation.objects.get().state, str(Activation.objects.get().reason)) == ("stopped", "wrong day")
    assert StateChange.objects.get(what="ending").by == operator


def test_disabling_leaves_a_drained_activation_its_own_end(delayed: LaunchSetting) -> None:
    activation = run_now(delayed, None, NOW)
    Activation.objects.update(ending="drained")
    disable_setting(delayed, None, said(""), NOW)
    Run.objects.update(state="finished", closed_at=NOW)
    end_activations(NOW)

    activation.refresh_from_db()
    assert activation.state == "succeeded"


# -- standalone ----------------------------------------------------------------------------------------------


def test_a_standalone_agent_needs_nothing_on_the_broker(standalone: LaunchSetting, server: Server) -> None:
    enable_setting(standalone, None, NOW)

    run = desired_state(server).runs[0]
    assert (run.kind, run.destination, run.queue) == (AgentKind.STANDALONE, "", "")
    assert (run.restart_seconds, run.lease_seconds, run.limit_messages) == (5.0, 15.0, 0)


def test_one_by_schedule_that_raises_is_not_started_again(standalone: LaunchSetting, server: Server) -> None:
    LaunchSetting.objects.update(timing="DELAYED", spread="MANY", enabled=True)
    run_now(LaunchSetting.objects.get(), None, NOW)

    run = desired_state(server).runs[0]
    assert (run.restart_seconds, run.lease_seconds) == (0.0, 0.0)


def test_one_that_returned_ends_its_activation_and_can_be_run_again(
    standalone: LaunchSetting, django_capture_on_commit_callbacks: Any
) -> None:
    enable_setting(standalone, None, NOW)
    with pytest.raises(Refused):
        run_now(standalone, None, NOW)
    activation = end_run(RunState.FINISHED, django_capture_on_commit_callbacks)
    assert (activation.state, activation.ending) == ("succeeded", "finished")
    assert str(activation.reason) == "all instances ended"
    assert plan_open_activations(NOW) == 0
    assert enable_setting(standalone, None, NOW) is None

    again = run_now(standalone, None, NOW)
    assert (again.state, again.runs.count()) == ("running", 1)


def test_one_that_raised_by_schedule_failed(
    standalone: LaunchSetting, django_capture_on_commit_callbacks: Any
) -> None:
    LaunchSetting.objects.update(timing="DELAYED", enabled=True)
    run_now(LaunchSetting.objects.get(), None, NOW)

    activation = end_run(RunState.FAILED, django_capture_on_commit_callbacks)
    assert (activation.state, str(activation.reason)) == ("failed", "the agent failed")


def test_many_end_when_every_server_has_ended(
    standalone: LaunchSetting, second_server: Server, django_capture_on_commit_callbacks: Any
) -> None:
    make_alive(second_server, now=NOW)
    OfferedAgent.objects.update(kind="standalone")
    LaunchSetting.objects.update(timing="DELAYED", spread="MANY", enabled=True)
    run_now(LaunchSetting.objects.get(), None, NOW)
    assert end_run(RunState.FINISHED, django_capture_on_commit_callbacks).state == "running"
    assert plan_open_activations(NOW) == 0, "the server that has ended begins nothing again"

    Run.objects.filter(closed_at=None).update(state="finished", closed_at=NOW)
    end_activations(NOW)
    assert Activation.objects.get().state == "succeeded"


def test_an_agent_of_another_kind_is_refused(
    setting: LaunchSetting, server: Server, second_server: Server
) -> None:
    make_alive(server, second_server, now=NOW)
    OfferedAgent.objects.update(kind="standalone")
    with pytest.raises(Refused) as refused:
        enable_setting(setting, None, NOW)
    assert refused.value.code == "other_kind"


# -- changes of a setting in use -----------------------------------------------------------------------------


@pytest.mark.parametrize("change", [{"spread": "MANY"}, {"timing": "DELAYED"}])
def test_spread_and_timing_change_only_when_every_activation_has_ended(
    setting: LaunchSetting, server: Server, change: dict[str, str]
) -> None:
    def changed() -> LaunchSetting:
        wish = LaunchSetting.objects.get()
        for name, value in change.items():
            setattr(wish, name, value)
        return wish

    make_alive(server, now=NOW)
    enable_setting(setting, None, NOW)
    Run.objects.update(reported_at=NOW)
    for reason in (
        ("This field cannot be changed while the setting is enabled. Disable the setting first."),
        "the previous activation has not ended",
    ):
        with pytest.raises(ValidationError, match=reason) as refused:
            save_setting(changed())
        assert set(refused.value.error_dict) == set(change)
        disable_setting(setting, None, said(""), NOW)

    Run.objects.update(state="finished", closed_at=NOW)
    end_activations(NOW)
    save_setting(changed())
    setting.refresh_from_db()
    assert {name: getattr(setting, name) for name in change} == change


def test_another_spread_is_made_on_the_broker_before_it_can_be_enabled(setting: LaunchSetting) -> None:
    setting.spread = "MANY"
    save_setting(setting)
    with pytest.raises(Refused) as refused:
        enable_setting(setting, None, NOW)
    assert refused.value.code == "not_provisioned"


def test_the_next_standalone_run_begins_when_the_one_before_is_closed(
    standalone: LaunchSetting, django_capture_on_commit_callbacks: Any
) -> None:
    enable_setting(standalone, None, NOW)
    Run.objects.update(reported_at=NOW)
    disable_setting(standalone, None, said(""), NOW)
    again = enable_setting(standalone, None, NOW)
    assert again is not None and again.runs.count() == 0

    end_run(RunState.FINISHED, django_capture_on_commit_callbacks)
    assert again.runs.count() == 1


def test_a_broker_that_is_away_holds_no_start_up(
    delayed: LaunchSetting,
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
    django_capture_on_commit_callbacks: Any,
) -> None:
    settings.MA_BROKER_STOMP = Account("127.0.0.1:1", "nobody", "")
    monkeypatch.setattr(broker_service, "_connection", None)
    with django_capture_on_commit_callbacks(execute=True):
        run_now(delayed, None, NOW)

    activation = Activation.objects.get()
    assert (activation.state, activation.waiting_at_start, activation.added_at_start) == (
        "running",
        None,
        None,
    )
