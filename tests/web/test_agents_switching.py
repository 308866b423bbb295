"""Enabling and disabling a setting."""

import threading
from datetime import timedelta
from typing import Any
from unittest import mock

import pytest
from django.db import connection

from agents.heartbeat.heartbeats import accept_heartbeat
from agents.heartbeat.run_reports import record_outcomes
from agents.models import Activation, LaunchSetting, Pool, ProvisionState, Run, Server, StateChange
from agents.reconciler import tend
from agents.settings.enable import disable_setting, enable_setting
from console import task_queue
from console.operations.refusals import Refused
from console.reasons import said
from contract.records import Closing, RecordRun, RunState
from tests.web.rows import NOW, activate, heartbeat, make_alive, make_setting


def test_enabling_starts_any_on_one_server(
    setting: LaunchSetting, server: Server, second_server: Server
) -> None:
    make_alive(server, second_server, now=NOW)
    activation = activate(setting, None, NOW)

    assert (activation.state, activation.runs.count()) == ("running", 1)
    setting.refresh_from_db()
    assert (setting.enabled, setting.state_since) == (True, NOW)


def test_enabling_starts_many_on_every_live_server(pool: Pool, server: Server, second_server: Server) -> None:
    make_alive(server, second_server, now=NOW)
    activation = activate(make_setting(pool, spread="MANY"), None, NOW)

    assert set(activation.runs.values_list("server__name", flat=True)) == {"srv-1", "srv-2"}


def test_any_goes_to_the_server_with_the_fewest_runs(
    pool: Pool, server: Server, second_server: Server
) -> None:
    make_alive(server, second_server, now=NOW)
    settings = [make_setting(pool, key) for key in ("aa", "bb", "cc", "dd")]
    servers = [activate(setting, None, NOW).runs.get().server.name for setting in settings]

    assert servers == ["srv-1", "srv-2", "srv-1", "srv-2"]


def test_enabling_twice_answers_the_open_activation(setting: LaunchSetting, server: Server) -> None:
    make_alive(server, now=NOW)
    first = enable_setting(setting, None, NOW)
    second = enable_setting(setting, None, NOW)

    assert first == second
    assert Run.objects.count() == 1


def test_enabling_is_refused_until_the_broker_has_the_queues(pool: Pool) -> None:
    pending = make_setting(pool, "pending", provision_state=ProvisionState.PENDING)
    outdated = make_setting(pool, "outdated", provisioned_hash="another wish")
    failed = make_setting(pool, "failed", provision_state=ProvisionState.FAILED)
    LaunchSetting.objects.filter(pk=failed.pk).update(provision_problem="AMQ229000: no disk")

    for setting in (pending, outdated, failed):
        with pytest.raises(Refused) as refused:
            enable_setting(setting, None, NOW)
        assert refused.value.code == "not_provisioned"
    assert "AMQ229000: no disk" in str(refused.value)
    assert not Activation.objects.exists()


def test_enabling_with_an_empty_pool_is_refused(db: None) -> None:
    setting = make_setting(Pool.objects.create(name="empty"))
    with pytest.raises(Refused, match="has no server"):
        enable_setting(setting, None, NOW)


def test_an_agent_that_no_server_offers_is_refused_when_all_are_here_to_tell(
    setting: LaunchSetting, server: Server, second_server: Server
) -> None:
    make_alive(server, second_server, now=NOW, agents=("demo.scripted",))
    with pytest.raises(
        Refused, match=r"has the agent “demo.orders”. Available agents: demo.scripted"
    ) as refused:
        enable_setting(setting, None, NOW)
    assert refused.value.code == "unknown_agent"


def test_disabling_withdraws_every_run_and_says_why(
    pool: Pool, server: Server, second_server: Server, operator: Any
) -> None:
    make_alive(server, second_server, now=NOW)
    setting = make_setting(pool, spread="MANY")
    activation = activate(setting, operator, NOW)
    assert disable_setting(setting, operator, said("the shop is closed"), NOW)
    assert not disable_setting(setting, operator, said("again"), NOW)

    setting.refresh_from_db()
    activation.refresh_from_db()
    assert (setting.enabled, str(setting.disabled_reason), setting.disabled_by) == (
        False,
        "the shop is closed",
        operator,
    )
    assert (activation.state, activation.runs.filter(wanted=True).count()) == ("stopped", 0)
    changes = StateChange.objects.filter(setting=setting, what="setting").order_by("id")
    assert [(change.old, change.new, change.by) for change in changes] == [
        ("disabled", "enabled", operator),
        ("enabled", "disabled", operator),
    ]


def test_an_activation_ends_with_the_closing_record_of_its_last_run(
    setting: LaunchSetting, server: Server, django_capture_on_commit_callbacks: Any
) -> None:
    make_alive(server, now=NOW)
    activation = activate(setting, None, NOW)
    run = activation.runs.get()
    Run.objects.update(reported_at=NOW)
    disable_setting(setting, None, said(""), NOW)
    record_run = RecordRun(setting.key, activation.pk, run.epoch, "srv-1", "demo.orders")
    closing = Closing(record_run, RunState.FINISHED, 5, 90, 4, 1, 0, NOW)
    activation.refresh_from_db()
    assert activation.ended_at is None

    later = NOW + timedelta(seconds=1)
    with django_capture_on_commit_callbacks(execute=True):
        record_outcomes(run, failed=4, temporary=1, recovered=2, stored=5, closing=closing, now=later)

    run.refresh_from_db()
    activation.refresh_from_db()
    assert (run.state, run.failed, run.temporary, run.recovered) == ("finished", 4, 1, 2)
    assert (run.closing_records, run.stored_records, run.handled) == (5, 5, 90)
    assert activation.ended_at == later


def test_enabling_again_starts_a_new_activation(setting: LaunchSetting, server: Server) -> None:
    make_alive(server, now=NOW)
    first = enable_setting(setting, None, NOW)
    disable_setting(setting, None, said(""), NOW)
    second = enable_setting(setting, None, NOW)

    assert first != second
    assert Run.objects.filter(wanted=True).get().activation == second


# -- tending -------------------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def no_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agents.reconciler.provision_due", lambda now: None)


def test_a_silent_server_loses_its_any_run_to_another_with_a_higher_epoch(
    setting: LaunchSetting, server: Server, second_server: Server
) -> None:
    make_alive(server, now=NOW)
    enable_setting(setting, None, NOW)
    later = NOW + timedelta(seconds=16)
    make_alive(second_server, now=later)
    tend(later)

    old, new = Run.objects.order_by("epoch")
    assert (old.server, old.wanted, old.state, old.closed_at) == (server, False, "lost", later)
    assert (new.server, new.wanted, new.state, new.epoch) == (second_server, True, "wanted", 2)


def test_within_the_patience_nothing_is_lost(
    setting: LaunchSetting, server: Server, second_server: Server
) -> None:
    make_alive(server, now=NOW)
    enable_setting(setting, None, NOW)
    later = NOW + timedelta(seconds=14)
    make_alive(second_server, now=later)
    tend(later)

    assert Run.objects.get().server == server


def test_the_absence_of_the_ma_itself_moves_no_run(
    setting: LaunchSetting, server: Server, second_server: Server
) -> None:
    for each in (server, second_server):
        accept_heartbeat(each, heartbeat(each.name), NOW)
    enable_setting(setting, None, NOW)
    holder = Run.objects.get().server
    back = NOW + timedelta(minutes=2)
    other = second_server if holder == server else server
    accept_heartbeat(other, heartbeat(other.name), back)
    tend(back)
    assert Run.objects.get().server == holder

    for seconds in (5, 10, 15):
        later = back + timedelta(seconds=seconds)
        accept_heartbeat(other, heartbeat(other.name), later)
        tend(later)
    assert Run.objects.get(wanted=True).server == other


def test_a_server_that_joins_the_pool_gets_its_run_of_many(
    pool: Pool, server: Server, second_server: Server
) -> None:
    make_alive(server, second_server, now=NOW)
    activation = activate(make_setting(pool, spread="MANY"), None, NOW)
    newcomer = Server.objects.create(name="srv-3")
    make_alive(newcomer, now=NOW)
    pool.servers.add(newcomer)
    tend(NOW)

    assert activation.runs.filter(wanted=True).count() == 3


def test_a_stopped_run_on_a_silent_server_ends_as_lost(setting: LaunchSetting, server: Server) -> None:
    make_alive(server, now=NOW)
    activation = activate(setting, None, NOW)
    Run.objects.update(reported_at=NOW)
    disable_setting(setting, None, said(""), NOW)
    tend(NOW + timedelta(seconds=5))
    activation.refresh_from_db()
    assert activation.ended_at is None

    tend(NOW + timedelta(seconds=20))
    activation.refresh_from_db()
    assert activation.ended_at == NOW + timedelta(seconds=20)
    assert Run.objects.get().state == "lost"


# -- commands and races --------------------------------------------------------------------------------------


def test_kmas_are_told_to_look_only_after_the_commit(
    setting: LaunchSetting, server: Server, django_capture_on_commit_callbacks: Any
) -> None:
    make_alive(server, now=NOW)
    with mock.patch.object(task_queue, "send", return_value=True) as send:
        with django_capture_on_commit_callbacks(execute=True):
            enable_setting(setting, None, NOW)
            assert not send.called
        send.assert_called_once_with("kma.poll", queue="kma.srv-1", keep=1)


def test_a_redis_that_is_away_is_no_error_of_who_sends(setting: LaunchSetting) -> None:
    assert not task_queue.send("kma.poll", queue="kma.srv-1")


@pytest.mark.django_db(transaction=True)
def test_of_several_enabled_at_once_one_starts_one_activation_with_one_run() -> None:
    server = Server.objects.create(name="srv-1")
    pool = Pool.objects.create(name="demo")
    pool.servers.add(server)
    setting = make_setting(pool)
    make_alive(server, now=NOW)
    together = threading.Barrier(4)
    answers: list[Any] = []

    def enable() -> None:
        try:
            together.wait(10)
            answers.append(activate(setting, None, NOW).pk)
        except BaseException as error:
            answers.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=enable) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    assert len(answers) == 4 and len(set(answers)) == 1, answers
    assert (Activation.objects.count(), Run.objects.count()) == (1, 1)
