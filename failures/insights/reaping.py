"""Runs whose runner is gone: ended, so that another one can begin; and what they left running on this
host."""

import os
import signal
from contextlib import suppress
from datetime import datetime

import structlog
from django.db import OperationalError, connection, transaction
from django.utils import timezone

from console.jobs import detached
from console.jobs.job import NOBODY
from console.reasons import NO_REASON, Reason
from failures.insights.asking import TAKEN_WITHIN
from failures.insights.places import RunFolder
from failures.models import PipelineRun, PipelineState
from failures.reasons import NOT_TAKEN, PROCESS_GONE, PROCESS_SILENT

log = structlog.get_logger(__name__)

# For a run that nobody begins: no worker, or a process that ends before it takes it.
UNBEGUN = 10 * TAKEN_WITHIN
# So long the row is waited for on PostgreSQL; on SQLite it is the busy timeout of the connection.
LOCK_MILLISECONDS = 20_000


def reap(now: datetime) -> PipelineRun | None:
    """The run that was ended by this call."""
    run = PipelineRun.objects.filter(open=True).first()
    if run is None:
        return None
    problem = _unbegun(run, now) if run.state == PipelineState.WAITING else _gone(run, now)
    if not problem:
        return None
    try:
        ended = _end_row(run, problem)
    except OperationalError as error:
        # A runner that froze inside a transaction holds the lock that this needs. Killed here and then never
        # written down: the next call finds its process gone.
        if not _kill_runner(run):
            raise
        log.warning("a runner of the pipeline held a lock and was ended", run=str(run.pk), reason=str(error))
        ended = _end_row(run, problem)
    if not ended:
        return None
    log.warning("a run of the pipeline was broken off", run=str(run.pk), why=str(problem))
    if run.host == detached.host():
        _end_all(run)
    return run


def _unbegun(run: PipelineRun, now: datetime) -> Reason:
    return NOT_TAKEN() if now - run.asked_at > UNBEGUN else NO_REASON


def _gone(run: PipelineRun, now: datetime) -> Reason:
    """Why it is taken for dead, or no reason."""
    if run.host == detached.host() and not _is_there(run):
        return PROCESS_GONE(pid=run.pid, host=run.host)
    # A run that began before runs had leases shows itself by its signs of life alone.
    until = run.lease_until or (run.heartbeat_at and run.heartbeat_at + run.lease)
    if until is None or until < now:
        return PROCESS_SILENT(pid=run.pid, host=run.host, since=str(run.heartbeat_at))
    return NO_REASON


def _is_there(run: PipelineRun) -> bool:
    return run.pid is not None and detached.started(run.pid) == run.process_started


def _end_row(run: PipelineRun, problem: Reason) -> bool:
    """False where it has shown itself meanwhile, or is over. Raises OperationalError where somebody holds the
    row, on SQLite the database."""
    mine = PipelineRun.objects.filter(
        pk=run.pk, state=run.state, holder=run.holder, lease_until=run.lease_until
    )
    state = PipelineState.CANCELLED if run.cancel_asked_at else PipelineState.DEAD
    with transaction.atomic():
        if connection.vendor == "postgresql":
            with connection.cursor() as cursor:
                cursor.execute(f"SET LOCAL lock_timeout = {int(LOCK_MILLISECONDS)}")
        ended = mine.update(**NOBODY, state=state, open=None, ended_at=timezone.now(), problem=problem)
        return bool(ended)


def _kill_runner(run: PipelineRun) -> bool:
    """Whether it was there, on this host."""
    if run.host != detached.host() or run.pid is None or not _is_there(run):
        return False
    with suppress(ProcessLookupError):
        os.kill(run.pid, signal.SIGKILL)
    return True


def _end_all(run: PipelineRun) -> None:
    _kill_runner(run)
    detached.end(run.pk)
    RunFolder(run).forget_results()
