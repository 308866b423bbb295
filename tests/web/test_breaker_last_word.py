"""With which counts a run ended: its closing record says so, and nothing that was on its way before it."""

from datetime import timedelta

import pytest

from agents.models import Pool, Run, RunPhase, Server, Trigger
from agents.services.desired import desired_state
from agents.services.heartbeats import accept_heartbeat
from agents.services.settings import enable_setting
from agents.services.starting import start_activation
from contract.messages import BreakerCounts, RunReport, RunState
from failures.intake import accept_batch
from tests.web import reports
from tests.web.reports import Spool
from tests.web.rows import NOW, heartbeat, make_alive, make_setting

pytestmark = pytest.mark.django_db(transaction=True)
COUNTS = BreakerCounts("builtins.KeyError", 2, 2)


def test_a_heartbeat_after_the_closing_record_does_not_change_what_the_next_activation_begins_with(
    pool: Pool, server: Server
) -> None:
    make_alive(server, now=NOW)
    setting = make_setting(pool, timing="DELAYED")
    enable_setting(setting, None, NOW)
    run = start_activation(setting, Trigger.PERSON, None, NOW).runs.select_related("activation__setting").get()
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
