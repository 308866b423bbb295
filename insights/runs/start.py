"""A run is asked for by writing its row; whoever comes first starts the process that works on it: of a
session of its own, nobody's child, so that it outlives the worker or the terminal that started it."""

import subprocess
import sys
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Q
from django.utils.translation import gettext as _

from console.operations.refusals import Refused
from insights.archive.readiness import readiness
from insights.models import PipelineRun, PipelineState, PipelineTrigger
from insights.runs.folder import RunFolder, unknown

# A process that was started takes its run well within this, or never.
TAKEN_WITHIN = timedelta(seconds=60)
# The shell ends at once, and what it left behind belongs to init.
_DETACHED = '"$@" </dev/null >>"$MA_PIPELINE_LOG" 2>&1 &'


def request_run(
    trigger: PipelineTrigger,
    now: datetime,
    *,
    by: Any = None,
    jobs: Sequence[str] = (),
    since: datetime | None = None,
    until: datetime | None = None,
    master: str = "",
) -> PipelineRun:
    """The new run, waiting. No jobs: all of them. Raises Refused with a stable code: off, missing,
    unknown_job, empty_span, open."""
    ready = readiness()
    if not ready.ready:
        raise Refused(
            "off" if ready.off else "missing", ready.says, _("docs/pipeline.md says what it needs.")
        )
    if wrong := unknown(jobs):
        text = _("There is no job of this name: %(names)s.") % {"names": ", ".join(wrong)}
        raise Refused("unknown_job", text)
    if since and until and since >= until:
        raise Refused("empty_span", _("The span is empty: its begin must lie before its end."))
    try:
        with transaction.atomic():
            return PipelineRun.objects.create(
                trigger=trigger, asked_at=now, asked_by=by, jobs=list(dict.fromkeys(jobs)), since=since,
                until=until,
                master=master or settings.MA_PIPELINE_MASTER,
            )  # fmt: skip
    except IntegrityError as error:
        text = _("Another run goes on; there is one at a time.")
        raise Refused("open", text, _("Wait for its end, or cancel it.")) from error


def cancel(run: PipelineRun, now: datetime, *, by: str) -> bool:
    """Returns whether it was open. One that nobody has begun is over at once; else its runner ends it within
    seconds, and where that one is gone the next look at dead runs does."""
    asked = {"cancel_asked_at": now, "cancel_asked_by": by[:150]}
    mine = PipelineRun.objects.filter(pk=run.pk)
    waiting = mine.filter(state=PipelineState.WAITING)
    if waiting.update(state=PipelineState.CANCELLED, open=None, ended_at=now, **asked):
        return True
    return bool(mine.filter(state=PipelineState.RUNNING).update(**asked))


def start_waiting(now: datetime) -> PipelineRun | None:
    """The run for which a process was started by this call. Of two callers at once one starts it; a second
    process for a run would find it taken."""
    free = Q(spawned_at=None) | Q(spawned_at__lte=now - TAKEN_WITHIN)
    run = PipelineRun.objects.filter(free, open=True, state=PipelineState.WAITING).first()
    if run is None:
        return None
    mine = PipelineRun.objects.filter(free, pk=run.pk, state=PipelineState.WAITING)
    if not mine.update(spawned_at=now, folder=str(RunFolder(run).path)):
        return None
    _spawn(run)
    return run


def _spawn(run: PipelineRun) -> None:
    """Raises OSError where no process can be started; the next look tries again."""
    folder = RunFolder(run)
    folder.make()
    program = [sys.executable, str(Path(settings.BASE_DIR) / "manage.py"), "run_pipeline", str(run.pk)]
    shell = ["/bin/sh", "-c", f'MA_PIPELINE_LOG="$1"; shift; {_DETACHED}', "sh", str(folder.log), *program]
    subprocess.run(shell, check=True, start_new_session=True, cwd=settings.BASE_DIR, stdin=subprocess.DEVNULL)
