"""Describes who works on a run: one process, which takes it once and shows itself until the end.

Every change of it asks for the holder, so that one who was taken for dead changes nothing any more.
"""

import os
import threading
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

import structlog
from django.db import Error, connection, transaction
from django.utils import timezone

from console.jobs import detached
from console.reasons import NO_REASON, Reason
from insights.models import PipelineRun, PipelineState

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
        return RunLost(f"run {self.run.pk} of the pipeline has another holder, or is over")

    def _show(self) -> None:
        """A database that is away or busy is no reason to end: the next beat tries again."""
        try:
            while not self._over.wait(BEAT_SECONDS):
                try:
                    self._beat(timezone.now())
                except Error as error:
                    log.warning("no sign of life of the pipeline", reason=str(error))
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
