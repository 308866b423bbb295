"""With which counts a run ended: its closing record says so, and nothing that was on its way before it."""

from datetime import timedelta

import pytest

from agents.activations.operations import start_activation
from agents.heartbeat.desired import desired_state
from agents.heartbeat.heartbeats import accept_heartbeat
from agents.models import LaunchSetting, Pool, Run, RunPhase, Server, Trigger
from agents.settings.enable import enable_setting
from contract.messages import RunReport
from contract.records import BreakerCounts, RunState
from failures.intake.batch import accept_batch
from tests.web import reports
from tests.web.reports import Spool
from tests.web.rows import NOW, heartbeat, make_alive, make_setting

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db(transaction=True)]
COUNTS = BreakerCounts("builtins.KeyError", 2, 2)


def test_a_heartbeat_after_the_closing_record_does_not_change_what_the_next_activation_begins_with(
    pool: Pool, server: Server
) -> None:
    make_alive(server, now=NOW)
    setting = make_setting(pool, timing="DELAYED")
    enable_setting(setting, None, NOW)
    run = (
        start_activation(setting, Trigger.PERSON, None, NOW).runs.select_related("activation__setting").get()
    )
    closing = reports.closing(reports.run_of(run), records=0, failed=2, handled=0, counts=COUNTS)
    accept_batch(server, Spool().batch(closing), NOW)
    # The KMA does not know yet that the run is no longer wanted: it speaks of one that waits, without counts.
    waits = RunReport(run.activation_id, run.epoch, setting.key, RunState.FINISHED, connected=True)
    accept_heartbeat(server, heartbeat(server.name, waits), NOW)

    start_activation(setting, Trigger.SCHEDULE, None, NOW + timedelta(seconds=1))

    (desired,) = desired_state(server).runs
    assert desired.carried_counts == COUNTS
    closed = Run.objects.get(pk=run.pk)
    assert (closed.state, closed.connected, closed.any_count) == (RunPhase.FINISHED, False, 2)


def test_what_was_given_up_keeps_the_counts_that_did_it(setting: LaunchSetting, server: Server) -> None:
    """A handler that was at hand ends well after the trip and sets the KMA's counts to 0."""
    make_alive(server, now=NOW)
    enable_setting(setting, None, NOW)
    run = Run.objects.select_related("activation__setting").get()
    spool, of = Spool(server.name), reports.run_of(run)
    accept_batch(server, spool.batch(reports.interruption(of)), NOW)

    draining = RunReport(
        run.activation_id, run.epoch, setting.key, RunState.INTERRUPTED, handled=1, in_progress=1
    )
    accept_heartbeat(server, heartbeat(server.name, draining), NOW)
    closing = reports.closing(of, records=1, handled=1, state=RunState.INTERRUPTED, counts=BreakerCounts())
    accept_batch(server, spool.batch(closing), NOW)

    run.refresh_from_db()
    assert (run.state, run.handled, run.closed_at) == (RunPhase.INTERRUPTED, 1, NOW)
    assert (run.same_type, run.same_count, run.any_count) == ("builtins.KeyError", 3, 3)


def test_a_heartbeat_that_tells_of_the_trip_first_does_not_decide_the_counts(
    setting: LaunchSetting, server: Server
) -> None:
    make_alive(server, now=NOW)
    enable_setting(setting, None, NOW)
    run = Run.objects.select_related("activation__setting").get()
    told = RunReport(
        run.activation_id, run.epoch, setting.key, RunState.INTERRUPTED, handled=1, in_progress=1
    )
    accept_heartbeat(server, heartbeat(server.name, told), NOW)

    accept_batch(server, Spool(server.name).batch(reports.interruption(reports.run_of(run))), NOW)

    run.refresh_from_db()
    assert (run.same_count, run.any_count, run.in_progress) == (3, 3, 1)
