"""A run is asked for by writing its row; whoever comes first starts the process that works on it: of a
session of its own, nobody's child, so that it outlives the worker or the terminal that started it.

One process takes it, once, and shows itself until the end. Every change of it asks for the holder, so that
one who was taken for dead changes nothing any more.
"""

import os
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import structlog
from django.conf import settings
from django.db import Error, IntegrityError, connection, transaction
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext as _

from console.jobs import detached
from console.operations.refusals import Refused
from console.reasons import NO_REASON, Reason
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
            "off" if ready.off else "missing",
            ready.says,
            _("See docs/how-to/pipeline.md for the requirements."),
        )
    if wrong := unknown(jobs):
        text = _("Unknown pipeline job: %(names)s.") % {"names": ", ".join(wrong)}
        raise Refused("unknown_job", text)
    if since and until and since >= until:
        raise Refused("empty_span", _("The time range is empty: the start must be before the end."))
    try:
        with transaction.atomic():
            return PipelineRun.objects.create(
                trigger=trigger, asked_at=now, asked_by=by, jobs=list(dict.fromkeys(jobs)), since=since,
                until=until,
                master=master or settings.MA_PIPELINE_MASTER,
            )  # fmt: skip
    except IntegrityError as error:
        text = _("Another pipeline run is in progress. Only one can run at a time.")
        raise Refused("open", text, _("Wait until it ends, or cancel it.")) from error


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


log = structlog.get_logger(__name__)

# It shows itself so often, and hears then whether somebody wants it to end.
BEAT_SECONDS = 1.0


class RunLost(Exception):
    """It was taken for dead: what was begun is rolled back, and this process ends."""


class Hold:
    """This process's hold on a run. `wanted_off`: a person asked for its end. `lost`: it is no longer
    ours."""

    def __init__(self, run: PipelineRun) -> None:
        self.run = run
        self.wanted_off = threading.Event()
        self.lost = threading.Event()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._show, name="pipeline-heartbeat", daemon=True)

    def __enter__(self) -> "Hold":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def report(self, **values: Any) -> None:
        """Raises RunLost."""
        if not self.run.renew(timezone.now(), **values):
            self.lost.set()
            raise self._taken_over()

    def report_stages(self, stages: Sequence[Mapping[str, Any]]) -> None:
        self.report(stages=list(stages))

    def end(self, state: PipelineState, problem: Reason = NO_REASON, **values: Any) -> None:
        """The last change; inside the transaction that loads what it found, or alone. Raises RunLost."""
        now = timezone.now()
        values |= {"open": None, "ended_at": now, "heartbeat_at": now, "problem": problem}
        if not self.run.end(state=state, **values):
            self.lost.set()
            raise self._taken_over()

    def _taken_over(self) -> RunLost:
        return RunLost(f"pipeline run {self.run.pk} was taken over or has ended")

    def _show(self) -> None:
        """A database that is away or busy is no reason to end: the next beat tries again."""
        try:
            while not self._over.wait(BEAT_SECONDS):
                try:
                    self._beat(timezone.now())
                except Error as error:
                    log.warning("pipeline heartbeat not stored", reason=str(error))
                    connection.close()
        finally:
            connection.close()

    def _beat(self, now: datetime) -> None:
        if not self.run.renew(now, heartbeat_at=now):
            if not self._over.is_set():
                self.lost.set()
        elif PipelineRun.objects.filter(pk=self.run.pk, cancel_asked_at__isnull=False).exists():
            self.wanted_off.set()


@transaction.atomic
def claim_run(run: UUID, now: datetime) -> Hold | None:
    """Returns None where somebody else has it, or it is over."""
    pid = os.getpid()
    waiting = PipelineRun.objects.filter(pk=run, state=PipelineState.WAITING)
    taken = waiting.update(
        state=PipelineState.RUNNING, holder=uuid4(), lease_until=now + PipelineRun.lease,
        host=detached.host(), pid=pid,
        process_started=detached.started(pid), started_at=now, heartbeat_at=now,
    )  # fmt: skip
    return Hold(PipelineRun.objects.get(pk=run)) if taken else None
