"""Runs whose runner is gone: ended, so that another one can begin; and what they left running on this host."""

import os
import signal
from contextlib import suppress
from datetime import datetime, timedelta

import structlog
from django.utils import timezone

from failures.insights import processes
from failures.insights.places import RunFolder
from failures.insights.starting import TAKEN_WITHIN
from failures.models import PipelineRun, PipelineState

log = structlog.get_logger(__name__)

# A runner that is there and silent for so long hangs. It shows itself every second, save while SQLite is busy.
SILENT = timedelta(minutes=5)
# For a run that nobody begins: no worker, or a process that ends before it takes it.
UNBEGUN = 10 * TAKEN_WITHIN


def reap(now: datetime) -> PipelineRun | None:
    """The run that was ended by this call."""
    run = PipelineRun.objects.filter(open=True).first()
    if run is None:
        return None
    problem = _unbegun(run, now) if run.state == PipelineState.WAITING else _gone(run, now)
    if not problem:
        return None
    mine = PipelineRun.objects.filter(pk=run.pk, state=run.state, holder=run.holder, heartbeat_at=run.heartbeat_at)
    state = PipelineState.CANCELLED if run.cancel_asked_at else PipelineState.DEAD
    if not mine.update(state=state, open=None, ended_at=timezone.now(), problem=problem):
        return None
    log.warning("a run of the pipeline was broken off", run=str(run.pk), why=problem)
    if run.host == processes.host():
        _end_all(run)
    return run


def _unbegun(run: PipelineRun, now: datetime) -> str:
    return "No process took it." if now - run.asked_at > UNBEGUN else ""


def _gone(run: PipelineRun, now: datetime) -> str:
    """Why it is taken for dead; empty where it is not."""
    if run.host == processes.host() and not _is_there(run):
        return f"Its process {run.pid} on {run.host} is gone."
    if run.heartbeat_at is None or now - run.heartbeat_at > SILENT:
        return f"Its process {run.pid} on {run.host} has given no sign of life since {run.heartbeat_at}."
    return ""


def _is_there(run: PipelineRun) -> bool:
    return run.pid is not None and processes.started(run.pid) == run.process_started


def _end_all(run: PipelineRun) -> None:
    if run.pid is not None and _is_there(run):
        with suppress(ProcessLookupError):
            os.kill(run.pid, signal.SIGKILL)
    processes.end(run.pk)
    RunFolder(run).forget_results()
