"""Starts the process that works on a run: of a session of its own, nobody's child, so that it outlives the
worker or the terminal that started it."""

import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path

from django.conf import settings
from django.db.models import Q

from failures.insights.places import RunFolder
from failures.models import PipelineRun, PipelineState

# A process that was started takes its run well within this, or never.
TAKEN_WITHIN = timedelta(seconds=60)
# The shell ends at once, and what it left behind belongs to init.
_DETACHED = '"$@" </dev/null >>"$MA_PIPELINE_LOG" 2>&1 &'


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
