"""An interruption is stored once, and what is interrupted now switches the setting off, once."""

import dataclasses
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from agents.heartbeat.heartbeats import accept_heartbeat
from agents.models import (
    Activation,
    BreakerTrip,
    Interruption,
    LaunchSetting,
    Pool,
    Run,
    RunPhase,
    Server,
    StateChange,
)
from agents.reconciler import tend
from agents.settings.enable import enable_setting
from contract.messages import RunReport
from contract.records import BreakerCounts, RunState
from failures.intake.batch import accept_batch
from tests.web import reports
from tests.web.reports import Spool
from tests.web.rows import NOW, activate, heartbeat, make_alive, make_setting

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db(transaction=True)]


@pytest.fixture(autouse=True)
def alive(server: Server, second_server: Server) -> None:
    make_alive(server, second_server, now=NOW)


@pytest.fixture
def many(pool: Pool) -> LaunchSetting:
    return make_setting(pool, spread="MANY")


def started(setting: LaunchSetting) -> dict[str, Run]:
    """The runs of a setting that was just enabled, by the names of their servers."""
    activation = activate(setting, None, NOW)
    return {run.server.name: run for run in activation.runs.select_related("server", "activation__setting")}


def give_up(run: Run, spool: Spool | None = None, at: datetime = NOW, **fields: Any) -> None:
    spool = spool or Spool(run.server.name)
    accept_batch(run.server, spool.batch(reports.interruption(reports.run_of(run), **fields)), at)


def is_on(setting: LaunchSetting) -> bool:
    return LaunchSetting.objects.get(pk=setting.pk).enabled


def test_one_interrupted_run_of_any_switches_the_setting_off(setting: LaunchSetting) -> None:
    (run,) = started(setting).values()

    give_up(run)

    trip = BreakerTrip.objects.get()
    assert not is_on(setting)
    assert (trip.reason, trip.exception_type, trip.ended_at) == ("same_type", "builtins.KeyError", None)
    assert trip.quorum == {"needed": 1, "interrupted": ["srv-1"], "live": ["srv-2"], "rule": "any"}
    assert trip.effects == [{"what": "setting_disabled", "name": "orders"}]
    assert (trip.activation_id, Activation.objects.get().state) == (run.activation_id, "interrupted")
    row = Interruption.objects.get()
    assert (row.trip, row.effective, row.any_count, len(row.evidence)) == (trip, True, 3, 3)
    run.refresh_from_db()
    assert (run.state, run.wanted, run.stored_records) == (RunPhase.INTERRUPTED, False, 1)
    off = StateChange.objects.get(what="setting", new="disabled")
    assert "builtins.KeyError" in str(off.reason) and "srv-1" in str(off.reason)


def test_many_goes_on_when_one_server_gave_it_up_and_is_not_started_there_again(many: LaunchSetting) -> None:
    runs = started(many)

    give_up(runs["srv-1"])
    tend(NOW)

    assert is_on(many)
    assert not BreakerTrip.objects.exists()
    wanted = Run.objects.filter(wanted=True).values_list("server__name", flat=True)
    assert list(wanted) == ["srv-2"]


def test_two_servers_of_many_make_one_trip_that_stops_the_third(many: LaunchSetting, pool: Pool) -> None:
    third = Server.objects.create(name="srv-3")
    pool.servers.add(third)
    make_alive(third, now=NOW)
    runs = started(many)

    give_up(runs["srv-1"])
    give_up(runs["srv-2"], at=NOW + timedelta(seconds=1), reason="any_type")

    trip = BreakerTrip.objects.get()
    assert trip.quorum == {
        "needed": 2, "interrupted": ["srv-1", "srv-2"], "live": ["srv-3"], "rule": "two_servers",
    }  # fmt: skip
    assert trip.effects == [
        {"what": "setting_disabled", "name": "orders"},
        {"what": "run_stopped", "name": "srv-3"},
    ]
    assert trip.reason == "any_type"
    assert trip.interruptions.count() == 2
    assert not Run.objects.filter(wanted=True).exists()

    give_up(runs["srv-3"])

    assert BreakerTrip.objects.count() == 1
    assert not Interruption.objects.get(server=third).effective


def test_one_of_many_is_all_there_are_when_the_others_were_silent_for_a_minute(
    many: LaunchSetting, server: Server, second_server: Server
) -> None:
    runs = started(many)
    give_up(runs["srv-1"])

    make_alive(server, now=NOW + timedelta(seconds=59))
    tend(NOW + timedelta(seconds=59))
    assert is_on(many)
    tend(NOW + timedelta(seconds=60))

    assert not is_on(many)
    assert BreakerTrip.objects.get().quorum["rule"] == "all_there_are"


def test_the_silence_of_others_does_not_count_while_the_ma_itself_was_away(
    many: LaunchSetting, server: Server, second_server: Server
) -> None:
    runs = started(many)
    back = NOW + timedelta(hours=1)
    accept_heartbeat(server, heartbeat("srv-1"), back)

    accept_batch(server, Spool().batch(reports.interruption(reports.run_of(runs["srv-1"]))), back)

    assert is_on(many)


def test_the_same_record_again_changes_nothing(setting: LaunchSetting) -> None:
    (run,) = started(setting).values()
    batch = Spool().batch(reports.interruption(reports.run_of(run)))

    accept_batch(run.server, batch, NOW)
    enable_setting(setting, None, NOW + timedelta(seconds=5))
    answer = accept_batch(run.server, dataclasses.replace(batch, spool=uuid4()), NOW)

    assert (answer.new, answer.known) == (0, 1)
    assert is_on(setting)
    assert Interruption.objects.count() == 1


def test_an_interruption_of_an_old_epoch_is_kept_and_has_no_effect(setting: LaunchSetting) -> None:
    (run,) = started(setting).values()
    Run.objects.create(activation=run.activation, server=run.server, epoch=2)

    give_up(run)

    assert is_on(setting)
    assert not Interruption.objects.get().effective
    run.refresh_from_db()
    assert run.stored_records == 1


def test_an_interruption_of_a_run_that_was_lost_and_taken_over_has_no_effect(
    setting: LaunchSetting, second_server: Server
) -> None:
    (run,) = started(setting).values()
    later = NOW + timedelta(minutes=1)
    make_alive(second_server, now=later)
    tend(later)

    give_up(run)

    assert is_on(setting)
    assert not Interruption.objects.get().effective
    assert Run.objects.get(wanted=True).server == second_server


def test_an_interruption_after_a_person_switched_it_off_has_no_effect(setting: LaunchSetting) -> None:
    (run,) = started(setting).values()
    LaunchSetting.objects.filter(pk=setting.pk).update(enabled=False)
    Activation.objects.update(state="stopped")

    give_up(run)

    assert not BreakerTrip.objects.exists()
    assert not Interruption.objects.get().effective


def test_a_record_of_a_setting_or_a_run_that_is_gone_costs_nothing(setting: LaunchSetting) -> None:
    (run,) = started(setting).values()
    gone = [
        dataclasses.replace(reports.run_of(run), setting="gone", activation=uuid4()),
        dataclasses.replace(reports.run_of(run), epoch=9),
    ]
    answer = accept_batch(run.server, Spool().batch(*[reports.interruption(of) for of in gone]), NOW)

    assert (answer.new, answer.refused) == (2, ())
    assert not Interruption.objects.get().effective
    assert is_on(setting)


def claim(run: Run, state: RunState, **more: Any) -> RunReport:
    counts = BreakerCounts("builtins.KeyError", 3, 3)
    return RunReport(run.activation_id, run.epoch, run.activation.setting.key, state, counts=counts, **more)


def test_a_heartbeat_may_tell_of_it_before_the_record_comes(setting: LaunchSetting) -> None:
    (run,) = started(setting).values()

    reply = accept_heartbeat(run.server, heartbeat("srv-1", claim(run, RunState.INTERRUPTED)), NOW)

    assert reply.desired is not None and reply.desired.runs == ()
    trip = BreakerTrip.objects.get()
    assert (trip.reason, trip.exception_type) == ("same_type", "builtins.KeyError")
    give_up(run)
    assert Interruption.objects.get().trip == trip
    assert Interruption.objects.get().effective


def test_what_is_claimed_while_the_last_handlers_finish_does_not_undo_it(many: LaunchSetting) -> None:
    run = started(many)["srv-1"]
    give_up(run)

    accept_heartbeat(run.server, heartbeat("srv-1", claim(run, RunState.DRAINING, in_progress=2)), NOW)

    run.refresh_from_db()
    assert (run.state, run.in_progress, run.any_count) == (RunPhase.INTERRUPTED, 2, 3)


def test_the_activation_ends_as_interrupted_with_the_closing_record(setting: LaunchSetting) -> None:
    (run,) = started(setting).values()
    spool, of = Spool(), reports.run_of(run)
    give_up(run, spool)

    closing = reports.closing(of, records=1, state=RunState.INTERRUPTED)
    accept_batch(run.server, spool.batch(closing), NOW + timedelta(seconds=3))

    run.refresh_from_db()
    activation = Activation.objects.get()
    assert (run.state, run.closed_at) == (RunPhase.INTERRUPTED, NOW + timedelta(seconds=3))
    assert (activation.state, activation.ended_at) == ("interrupted", NOW + timedelta(seconds=3))


def test_a_server_that_gave_it_up_and_then_died_has_still_given_it_up(
    many: LaunchSetting, second_server: Server
) -> None:
    runs = started(many)
    give_up(runs["srv-1"])
    later = NOW + timedelta(seconds=40)
    make_alive(second_server, now=later)
    tend(later)
    make_alive(runs["srv-1"].server, now=later)
    tend(later)

    runs["srv-1"].refresh_from_db()
    assert (runs["srv-1"].state, runs["srv-1"].closed_at) == (RunPhase.INTERRUPTED, later)
    assert Run.objects.filter(server__name="srv-1").count() == 1


def test_a_kill_between_the_record_and_the_trip_is_made_good(
    setting: LaunchSetting, monkeypatch: pytest.MonkeyPatch
) -> None:
    (run,) = started(setting).values()
    with monkeypatch.context() as broken:
        broken.setattr("agents.breaker.interruption.evaluate_trip", lambda *_: None)
        give_up(run)
    assert is_on(setting)

    tend(NOW)

    assert not is_on(setting)
    assert Interruption.objects.get().trip == BreakerTrip.objects.get()


def test_heartbeats_alone_find_the_quorum_while_redis_is_away(
    many: LaunchSetting, server: Server, second_server: Server
) -> None:
    """And a server that is lost is taken over: nothing that decides depends on Redis."""
    run = started(many)["srv-1"]
    tend(NOW)
    give_up(run)
    for second in range(2, 68, 2):
        accept_heartbeat(server, heartbeat("srv-1"), NOW + timedelta(seconds=second))

    assert BreakerTrip.objects.get().quorum["rule"] == "all_there_are"
    assert not is_on(many)
