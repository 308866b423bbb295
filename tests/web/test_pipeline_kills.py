"""The processes of a run die, at each step and whichever of them: nothing is loaded by halves, nothing is
left running, and the next run does it all."""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.utils import timezone

from console.jobs import detached
from console.operations.refusals import Refused
from insights.models import FailureTrend, InsightTable, PipelineRun
from insights.reasons import NOT_TAKEN, SIGNALLED
from insights.runs import reaper, spark, start
from insights.runs.folder import RunFolder
from insights.runs.reaper import UNBEGUN, reap
from insights.runs.start import TAKEN_WITHIN, cancel, start_waiting
from tests.web.pipeline import asked, stand_in, until, use, worked
from tests.web.test_failures_intake_at_once import at_once
from tests.web.test_retention_at_once import ROOT, environ

pytestmark = [pytest.mark.kill, pytest.mark.both_databases, pytest.mark.django_db(transaction=True)]

# Kills its own process before or after a call of one of its steps.
DYING = """
import os, signal, sys
import django
django.setup()
from uuid import UUID
from console.operations.refusals import Refused
from insights.runs import spark, start, worker
spark.LOOK_SECONDS = start.BEAT_SECONDS = 0.02
run, where, name, when = UUID(sys.argv[1]), *sys.argv[2].split(":")
def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)
module = {"worker": worker, "spark": spark, "hold": start.Hold}[where]
real = getattr(module, name, None)
def dying(*arguments, **named):
    if when == "before":
        die()
    found = real(*arguments, **named)
    die()
if name != "nothing":
    setattr(module, name, dying)
worker.work_on_run(run)
"""


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch, settings: Any, tmp_path: Path) -> None:
    monkeypatch.setattr(spark, "LOOK_SECONDS", 0.02)
    monkeypatch.setattr(start, "BEAT_SECONDS", 0.02)
    use(settings, tmp_path, "well")


def own_environ(settings: Any) -> dict[str, str]:
    return environ() | {
        "MA_DATA": str(settings.MA_DATA),
        "MA_ARCHIVE_URL": settings.MA_ARCHIVE_URL,
        "MA_PIPELINE_SUBMIT": settings.MA_PIPELINE_SUBMIT,
    }


def runner(run: PipelineRun, settings: Any, death: str = "worker:nothing:") -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", DYING, str(run.pk), death]
    return subprocess.Popen(command, cwd=ROOT, env=own_environ(settings))


def is_dead(run: PipelineRun) -> None:
    """The look at dead runs ends it, and the next one is done whole."""
    assert PipelineRun.objects.get(pk=run.pk).state == "running"
    assert not FailureTrend.objects.exists() and not InsightTable.objects.exists()
    with pytest.raises(Refused):
        asked()
    found = reap(timezone.now())
    assert found is not None and found.pk == run.pk
    dead = PipelineRun.objects.get(pk=run.pk)
    assert dead.state == "dead" and "no longer exists" in str(dead.problem) and dead.ended_at
    assert detached.of_run(run.pk) == []

    assert reap(timezone.now()) is None
    assert worked().state == "done" and FailureTrend.objects.count() == 2


@pytest.mark.parametrize(
    "death",
    [
        "worker:plan_of:before", "worker:plan_of:after", "worker:submit:after",
        "worker:read_report:after",
        "worker:load:before", "worker:load:after", "hold:end:after", "spark:_ship:after",
        "hold:report_stages:after",
    ],
)  # fmt: skip
def test_the_runner_dies_at_a_step(settings: Any, death: str) -> None:
    run = asked()
    process = runner(run, settings, death)

    assert process.wait(60) == -signal.SIGKILL
    is_dead(run)


@pytest.mark.parametrize("mode", ["hangs", "forks"])
def test_the_runner_dies_while_spark_works(settings: Any, tmp_path: Path, mode: str) -> None:
    """What it started goes with it; what got out of its hands is ended by the next look."""
    use(settings, tmp_path, mode)
    run = asked()
    process = runner(run, settings)
    until(lambda: (RunFolder(run).path / "hanging").exists())
    process.send_signal(signal.SIGKILL)
    process.wait(30)

    until(lambda: len(detached.of_run(run.pk)) == (1 if mode == "forks" else 0))
    use(settings, tmp_path, "well")
    is_dead(run)


def test_spark_is_killed(settings: Any, tmp_path: Path) -> None:
    use(settings, tmp_path, "hangs")
    run = asked()
    process = runner(run, settings)
    until(lambda: (RunFolder(run).path / "hanging").exists())
    for pid in detached.of_run(run.pk):
        os.kill(pid, signal.SIGKILL)

    assert process.wait(30) == 0
    run.refresh_from_db()
    assert run.state == "failed" and "The Spark application ended with exit code -9:" in str(run.problem)


def test_the_runner_is_told_to_stop(settings: Any, tmp_path: Path) -> None:
    use(settings, tmp_path, "forks")
    run = asked()
    command = [sys.executable, str(ROOT / "manage.py"), "run_pipeline", str(run.pk)]
    process = subprocess.Popen(command, env=own_environ(settings))
    until(lambda: (RunFolder(run).path / "hanging").exists())
    process.terminate()
    process.wait(30)

    run.refresh_from_db()
    assert (run.state, run.problem) == ("failed", SIGNALLED())
    assert detached.of_run(run.pk) == []


def test_a_run_outlives_the_worker_that_started_it(settings: Any, tmp_path: Path) -> None:
    use(settings, tmp_path, "hangs")
    run = asked()
    code = (
        "import django; django.setup(); from django.utils import timezone; import os, signal;"
        "from insights.runs.start import start_waiting; assert start_waiting(timezone.now());"
        "os.killpg(0, signal.SIGKILL)"
    )
    worker = subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, env=own_environ(settings), process_group=0
    )
    assert worker.wait(60) == -signal.SIGKILL

    until(lambda: PipelineRun.objects.get().state == "running" and (RunFolder(run).path / "hanging").exists())
    assert reap(timezone.now()) is None
    taken = PipelineRun.objects.get()
    assert taken.pid and os.getsid(taken.pid) != os.getsid(0)
    assert cancel(run, timezone.now(), by="chief")
    until(lambda: PipelineRun.objects.get().state == "cancelled")
    until(lambda: not detached.started(taken.pid or 0))


def test_of_two_workers_one_starts_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[PipelineRun] = []
    monkeypatch.setattr("insights.runs.start._spawn", started.append)
    run, now = asked(), timezone.now()

    answers = at_once(*[lambda: start_waiting(now)] * 3)
    assert [each.pk for each in answers if each] == [run.pk] == [each.pk for each in started]
    assert start_waiting(now + TAKEN_WITHIN / 2) is None
    assert start_waiting(now + TAKEN_WITHIN + timedelta(seconds=1)) is not None


def test_a_run_that_nobody_takes_is_over_after_a_while() -> None:
    run = asked()
    assert reap(run.asked_at + UNBEGUN - timedelta(seconds=1)) is None
    assert reap(run.asked_at + UNBEGUN + timedelta(seconds=1)) is not None
    assert PipelineRun.objects.get().problem == NOT_TAKEN()


def test_one_that_hangs_is_taken_for_dead_and_killed(settings: Any, tmp_path: Path) -> None:
    use(settings, tmp_path, "hangs")
    run = asked()
    process = runner(run, settings)
    try:
        until(lambda: (RunFolder(run).path / "hanging").exists())
        process.send_signal(signal.SIGSTOP)
        assert reap(timezone.now()) is None
        # Frozen between the commit of a sign of life and its end it is killed by the first look and ended by
        # the next.
        until(lambda: reap(timezone.now() + PipelineRun.lease + timedelta(seconds=1)) is not None)
        assert process.wait(30) == -signal.SIGKILL
    finally:
        process.kill()
        process.wait()
    assert PipelineRun.objects.get().problem.code == "pipeline_run.process_silent"
    assert detached.of_run(run.pk) == []


# Takes the run, writes to its row and freezes before the commit.
FROZEN = """
import os, signal, sys
import django
django.setup()
from uuid import UUID
from django.db import transaction
from django.utils import timezone
from console.reasons import said
from insights.runs.start import claim_run
from insights.models import PipelineRun
run = UUID(sys.argv[1])
assert claim_run(run, timezone.now())
with transaction.atomic():
    PipelineRun.objects.filter(pk=run).update(problem=said("in the middle"))
    os.kill(os.getpid(), signal.SIGSTOP)
"""


def is_stopped(pid: int) -> bool:
    return "(stopped)" in Path(f"/proc/{pid}/status").read_text()


def test_one_that_froze_inside_a_transaction_is_killed_before_the_database_is_asked_again(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It holds the only lock of SQLite, and on PostgreSQL that of the row: who waits for it waits for
    ever."""
    monkeypatch.setattr(reaper, "LOCK_MILLISECONDS", 200, raising=False)
    with connection.cursor() as cursor:
        cursor.execute(
            "PRAGMA busy_timeout = 200" if connection.vendor == "sqlite" else "SET lock_timeout = '200ms'"
        )
    run = asked()
    process = subprocess.Popen(
        [sys.executable, "-c", FROZEN, str(run.pk)], cwd=ROOT, env=own_environ(settings)
    )
    try:
        until(lambda: is_stopped(process.pid))
        with suppress(OperationalError):
            reap(timezone.now() + PipelineRun.lease + timedelta(seconds=1))
        until(lambda: process.poll() is not None or is_stopped(process.pid))
        assert process.poll() == -signal.SIGKILL, "the frozen runner is still there, with its lock"
        assert PipelineRun.objects.get().state == "dead"
    finally:
        process.kill()
        process.wait()
        connection.close()


def test_one_on_another_host_is_told_by_its_signs_of_life_alone() -> None:
    now = timezone.now()
    run = asked()
    PipelineRun.objects.update(
        state="running", host="elsewhere", pid=1, process_started="then", lease_until=now + PipelineRun.lease
    )
    assert reap(now + PipelineRun.lease - timedelta(seconds=1)) is None
    assert cancel(run, now, by="chief")
    assert reap(now + PipelineRun.lease + timedelta(seconds=1)) is not None
    assert PipelineRun.objects.get().state == "cancelled"


def test_one_that_began_before_runs_had_leases_is_told_by_its_signs_of_life() -> None:
    now = timezone.now()
    asked()
    PipelineRun.objects.update(
        state="running", host="elsewhere", pid=1, process_started="then", heartbeat_at=now, lease_until=None
    )
    assert reap(now + PipelineRun.lease - timedelta(seconds=1)) is None
    assert reap(now + PipelineRun.lease + timedelta(seconds=1)) is not None


def test_a_pid_that_was_given_out_again_is_no_sign_of_life() -> None:
    now = timezone.now()
    asked()
    PipelineRun.objects.update(
        state="running",
        host=detached.host(),
        pid=os.getpid(),
        process_started="another boot/1",
        lease_until=now + PipelineRun.lease,
    )
    assert reap(now) is not None


def test_a_program_that_cannot_be_started_ends_the_run(settings: Any, tmp_path: Path) -> None:
    broken = Path(stand_in(tmp_path, "well"))
    broken.write_text("#!/no/such/interpreter\n")
    run = worked()

    assert run.state == "failed" and "The Spark application ended with exit code 1:" in str(run.problem)
