"""What a worker does for the pipeline every few seconds; each step may be done twice."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import unquote, urlsplit

import structlog
from django.conf import settings
from django.db.models import Min

from agents.models import Server
from console.operations.refusals import Refused
from failures.archive.readiness import is_default, readiness
from failures.insights.asking import ask, start_waiting
from failures.insights.places import RunFolder
from failures.insights.reaping import reap
from failures.models import InsightTable, PipelineRun, PipelineState, PipelineTrigger

log = structlog.get_logger(__name__)

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
            ask(PipelineTrigger.NIGHTLY, now)
        except Refused as refused:  # somebody else was faster
            log.info("no run of the pipeline tonight yet", reason=str(refused))
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
