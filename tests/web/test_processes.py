"""Who of our own processes is alive: nobody is taken for one who only left a row behind."""

from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from agents.liveness import heard_for, note_hearing_again
from agents.models import ComponentState, Server
from alerts.evaluation import evaluate_all
from console.processes import last_heartbeat, lock, once_per, record_heartbeat, seconds_since
from deploy import secret_files
from deploy.layout import Layout
from ma_site.checks import services
from ma_site.checks.work import check_processes
from ma_site.relocation import ALIVE, running_processes
from tests.web.rows import NOW

pytestmark = pytest.mark.django_db
SECOND = timedelta(seconds=1)


def test_the_latest_heartbeat_of_a_process_counts() -> None:
    assert last_heartbeat("beat") is None and seconds_since("beat", NOW) is None
    for second in (0, 5):
        record_heartbeat("beat", NOW + second * SECOND)
    record_heartbeat("feed", NOW)
    assert last_heartbeat("beat") == NOW + 5 * SECOND
    assert [seconds_since(name, NOW + 7 * SECOND) for name in ("beat", "feed")] == [2.0, 7.0]


def test_a_heartbeat_that_came_while_somebody_asked_is_no_time_ago() -> None:
    record_heartbeat("feed", NOW + SECOND / 4)
    assert [seconds_since("feed", NOW), *[each.detail for each in check_processes(NOW) if each.ok]] == [
        0.0, "feed: last heartbeat 0 s ago",
    ]  # fmt: skip


def test_a_site_runs_for_as_long_as_a_process_shows_itself(server: Server) -> None:
    record_heartbeat("beat", NOW)
    record_heartbeat("feed", NOW - ALIVE)
    assert running_processes(NOW) == ["beat"]
    Server.objects.filter(pk=server.pk).update(last_seen_at=NOW)
    assert running_processes(NOW + ALIVE - SECOND) == ["beat", "web"]
    assert running_processes(NOW + ALIVE) == []


def test_what_ended_in_order_runs_no_more(server: Server, settings: object, tmp_path: Path) -> None:
    """`./ma down` says when; whoever shows itself later, or a clock that was put back, is believed."""
    settings.MA_DATA = tmp_path  # type: ignore[attr-defined]
    stopped = Layout(tmp_path).stopped
    secret_files.write(stopped, f"{NOW.isoformat()}\n")
    record_heartbeat("beat", NOW)
    Server.objects.filter(pk=server.pk).update(last_seen_at=NOW - SECOND)
    assert running_processes(NOW + SECOND) == []
    assert running_processes(NOW - SECOND) == ["beat", "web"], "that stop has not been yet"
    record_heartbeat("beat", NOW + SECOND)
    assert running_processes(NOW + 2 * SECOND) == ["beat"]
    stopped.write_text("cut off")
    assert running_processes(NOW + 2 * SECOND) == ["beat", "web"]


def test_a_command_that_has_ended_is_no_process_of_a_running_site() -> None:
    """As the doctor, whom people ask before they move their site."""
    assert [
        finding.ok for finding in services.check_database(NOW) if "reads and writes" in finding.detail
    ] == [True]
    assert ComponentState.objects.get(name="database").measured_at == NOW, "it has written"
    assert running_processes(NOW) == []


def test_a_lock_is_no_process_of_a_running_site() -> None:
    """As that of `provision`, or of a worker that was killed while it had one."""
    now = timezone.now()
    with lock("provision", timedelta(minutes=2)) as taken:
        assert taken and once_per("alerts", 10 * SECOND, now)
        assert running_processes(now) == []


def test_what_was_evaluated_and_heard_is_no_process(server: Server) -> None:
    evaluate_all(NOW)
    note_hearing_again(server, NOW)
    assert not heard_for(2 * SECOND, NOW + SECOND) and heard_for(SECOND, NOW + SECOND)
    assert running_processes(NOW) == []
