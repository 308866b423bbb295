"""Describes what a worker does for the pipeline every few seconds; each step may be done twice."""

import os
import signal
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import unquote, urlsplit

import structlog
from django.conf import settings
from django.db import OperationalError, transaction
from django.db.models import Min
from django.utils import timezone

from agents.models import Server
from console.database.statements import bound_lock_waits
from console.jobs import detached
from console.jobs.engine import NOBODY
from console.operations.refusals import Refused
from console.reasons import NO_REASON, Reason
from insights.archive.readiness import is_default, readiness
from insights.models import InsightTable, PipelineRun, PipelineState, PipelineTrigger
from insights.reasons import NOT_TAKEN, PROCESS_GONE, PROCESS_SILENT
from insights.runs.folder import RunFolder
from insights.runs.start import TAKEN_WITHIN, request_run, start_waiting

log = structlog.get_logger(__name__)


# -- runs whose runner is gone: ended, so that another one can begin; and what they left running on this host
# --

# For a run that nobody begins: no worker, or a process that ends before it takes it.
UNBEGUN = 10 * TAKEN_WITHIN
# So long the row is waited for.
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
        log.warning("pipeline runner killed: it held a lock", run=str(run.pk), reason=str(error))
        ended = _end_row(run, problem)
    if not ended:
        return None
    log.warning("pipeline run aborted", run=str(run.pk), why=str(problem))
    if run.host == detached.host():
        _end_all(run)
    return run


def _unbegun(run: PipelineRun, now: datetime) -> Reason:
    return NOT_TAKEN() if now - run.asked_at > UNBEGUN else NO_REASON


def _gone(run: PipelineRun, now: datetime) -> Reason:
    """Returns why it is taken for dead, or no reason."""
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
        bound_lock_waits(LOCK_MILLISECONDS)
        ended = mine.update(**NOBODY, state=state, open=None, ended_at=timezone.now(), problem=problem)
        return bool(ended)


def _kill_runner(run: PipelineRun) -> bool:
    """Returns whether it was there, on this host."""
    if run.host != detached.host() or run.pid is None or not _is_there(run):
        return False
    with suppress(ProcessLookupError):
        os.kill(run.pid, signal.SIGKILL)
    return True


def _end_all(run: PipelineRun) -> None:
    _kill_runner(run)
    detached.end(run.pk)
    RunFolder(run).forget_results()


# -- the nightly run, and those of long ago
# -------------------------------------------------------------------


# An installation that never ran it begins with its first night, not at its first start …
FIRST = timedelta(hours=1)
# … save where nobody chose the archive: then so long after both its first server and the archive's folder
# were made, and the demo has failed by then. A range of the archive ends ten minutes ago. The folder counts
# because an upgraded installation has servers for long: its first start with a pipeline is the one that makes
# the folder.
AFTER_FIRST_START = timedelta(minutes=12)
FORGOTTEN = 20


def tend(now: datetime) -> None:
    reap(now)
    if is_due(now) and readiness().ready:
        try:
            request_run(PipelineTrigger.NIGHTLY, now)
        except Refused as refused:  # somebody else was faster
            log.info("nightly pipeline run not started", reason=str(refused))
    start_waiting(now)
    forget_old(now)


def due_at(now: datetime) -> datetime | None:
    """The latest instant at which the nightly run was due; None: it is switched off."""
    at = settings.MA_PIPELINE_AT
    if at is None:
        return None
    today = datetime.combine(now.astimezone(UTC).date(), at, tzinfo=UTC)
    return today if today <= now else today - timedelta(days=1)


def is_due(now: datetime) -> bool:
    """Once a night, also later where nothing ran at that time. One that goes on is waited for."""
    due = due_at(now)
    if due is None or PipelineRun.objects.filter(open=True).exists():
        return False
    runs = PipelineRun.objects.order_by("-asked_at")
    last = runs.filter(trigger=PipelineTrigger.NIGHTLY).first()
    if last is not None and last.asked_at >= due:
        return False
    # A whole one that somebody asked for since did the night's work.
    if runs.filter(asked_at__gte=due, state=PipelineState.DONE, jobs=[], since=None, until=None).exists():
        return False
    return runs.exists() or now - due < FIRST or _is_first_due(now)


def _is_first_due(now: datetime) -> bool:
    """Asked only where there was never a run."""
    if not is_default():
        return False
    first = Server.objects.aggregate(first=Min("created_at"))["first"]
    return first is not None and now - max(first, _archive_made_at() or first) >= AFTER_FIRST_START


def _archive_made_at() -> datetime | None:
    """Nothing is put into the folder before the first run, so it was changed last when it was made."""
    try:
        changed = Path(unquote(urlsplit(settings.MA_ARCHIVE_URL).path)).stat().st_mtime
    except OSError:
        return None
    return datetime.fromtimestamp(changed, UTC)


def forget_old(now: datetime) -> int:
    """Rows and files of runs that ended long ago; what they found stays, and so does the last that found
    something."""
    before = now - timedelta(days=settings.MA_KEEP_PIPELINE_RUNS_DAYS)
    old = PipelineRun.objects.filter(open=None, ended_at__lt=before).exclude(
        pk__in=InsightTable.objects.values("run_id")
    )
    for run in (found := list(old.order_by("ended_at")[:FORGOTTEN])):
        RunFolder(run).forget()
        run.delete()
    return len(found)
