"""The one engine of jobs: the part of the row that all have, and who takes a job that nobody works on and
does its steps for a while.

The row of the job is the truth; a task only makes it sooner, and beat finds what was lost with it. Killed
between two steps, the lease runs out and another worker goes on with what the rows say.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, ClassVar, Generic, Self, TypeVar, cast
from uuid import uuid4

import structlog
from django.db import models, transaction
from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from broker.port import BrokerError
from console.reasons import NO_REASON, Reason, ReasonField, ReasonKind, said
from console.task_queue import send

# Why nobody works on it for some seconds: something went wrong (`problem`), and is tried again.
RETRY = "retry"
# Columns of a job that nobody works on, and that waits for nothing.
NOBODY: dict[str, Any] = {"holder": None, "lease_until": None, "wait_reason": ""}


class Job(models.Model):
    """`holder` works on it, until `lease_until` at most. A lease without a holder is a pause, during which
    nobody does anything: `wait_reason` says why, in a stable word. `problem` is what went wrong: with RETRY
    the next try forgets it, else it stays.

    The lease saves work, it is not what keeps messages safe: every step may run twice, and at the same time
    elsewhere. A job as its worker has loaded it is the worker's hold on it."""

    # A worker may be silent so long before another one takes the job over.
    lease: ClassVar[timedelta] = timedelta(seconds=30)

    state = models.CharField(max_length=10)
    holder = models.UUIDField(null=True, editable=False)
    lease_until = models.DateTimeField(null=True, editable=False)
    wait_reason = models.TextField(_("waiting for"), blank=True)
    problem = ReasonField(_("problem"))

    objects: ClassVar[models.Manager[Self]] = models.Manager()

    class Meta:
        abstract = True

    def renew(self, now: datetime, **columns: Any) -> bool:
        """Holds on to it for another lease, if it is still ours and still in the state that we saw: false
        when a person paused or cancelled it, or another worker has it. Inside a transaction it fences what is
        done there."""
        until = now + self.lease
        if not self._mine().filter(state=self.state).update(lease_until=until, **columns):
            return False
        self.lease_until = until
        return True

    def release(
        self, *, until: datetime | None = None, wait_reason: str = "", problem: Reason = NO_REASON
    ) -> None:
        """Lets others take it, at once or when a pause is over, if it is still ours. `problem` is forgotten
        by the next try; one that is there already stays instead, for it is why the job ends."""
        columns: dict[str, Any] = {"holder": None, "lease_until": until, "wait_reason": wait_reason}
        mine = self._mine()
        if problem and not mine.values_list("problem", flat=True).first():
            columns |= {"wait_reason": RETRY, "problem": problem}
        mine.update(**columns)

    def end(self, **columns: Any) -> bool:
        """Returns whether it was still ours, and in the state that we saw."""
        return bool(self._mine().filter(state=self.state).update(**NOBODY, **columns))

    def _mine(self) -> models.QuerySet[Self]:
        return type(self).objects.filter(pk=self.pk, holder=self.holder, holder__isnull=False)


log = structlog.get_logger(__name__)

RUN_TASK = "console.run_job"
TASK_EXPIRES = 60.0
# Seconds that one task works on a job before it lets others have the worker.
TURN = 20.0
# After the broker did not answer, and after a fault of ours.
PAUSE, LONG_PAUSE = timedelta(seconds=5), timedelta(seconds=30)
# Jobs of a kind that one look at what nobody works on starts.
STARTED = 20
# Why a job is not taken: another one of its lane is worked on.
ANOTHER = "another_job"
WORKER_FAILED = ReasonKind("job.worker_failed", _("%(type)s; see the worker log for details"))

J = TypeVar("J", bound=Job)


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing is to be done before then. `why` is a stable word."""

    until: datetime
    why: str


class Worker(ABC, Generic[J]):
    """Holds what is done with the jobs of one kind. `workable`: what may be taken up. `lane`: a column; of
    the jobs that are equal in it one is worked on at a time. `order`: who comes first."""

    model: ClassVar[type[Job]]
    workable: ClassVar[Q]
    lane: ClassVar[str] = ""
    order: ClassVar[str] = "created_at"

    @abstractmethod
    def step(self, job: J) -> bool | Wait:
        """Works for some seconds; whether there is more to do at once. May run twice. Raises BrokerError."""

    def begun(self, job: J, now: datetime) -> dict[str, Any]:
        """Columns of a job that is taken up, as it was before."""
        return {}

    def problem_of(self, error: BrokerError) -> Reason:
        return said(str(error))

    def tidy(self, now: datetime) -> None:
        """Before jobs are started: what is over is ended and forgotten."""

    def rows(self) -> QuerySet[J]:
        return cast("QuerySet[J]", self.model.objects.filter(self.workable))

    def free(self, now: datetime) -> QuerySet[J]:
        """Those that nobody works on, and whose pause is over."""
        return self.rows().filter(Q(lease_until=None) | Q(lease_until__lte=now))


def start(job: Job) -> None:
    """Best effort: beat finds a job that nobody works on."""
    send(RUN_TASK, kind_of(job), str(job.pk), expires=TASK_EXPIRES)


def kind_of(job: Job | type[Job]) -> str:
    return job._meta.label_lower


def start_due(worker: Worker[J], now: datetime) -> None:
    """Starts jobs that nobody works on: their task was lost, their worker died, or their pause is over."""
    worker.tidy(now)
    for job in _due(worker, now):
        start(job)


def _due(worker: Worker[J], now: datetime) -> Iterator[J]:
    jobs = worker.free(now).order_by(worker.order)
    if not worker.lane:
        yield from jobs[:STARTED]
        return
    for _number in range(STARTED):
        job = jobs.first()
        if job is None:
            return
        yield job
        # Of each lane one: the others would only be told to wait for it.
        jobs = jobs.exclude(**{worker.lane: getattr(job, worker.lane)})


@transaction.atomic
def claim(worker: Worker[J], pk: Any, now: datetime) -> J | None:
    """The job, held by whoever calls; None: it is over, somebody works on it, or on another one of its lane.

    Two workers that claim two jobs of a lane lock the same rows in the same order: the second sees the
    first."""
    found = worker.rows().filter(pk=pk).first()
    if found is None:
        return None
    lane = {worker.lane: getattr(found, worker.lane)} if worker.lane else {"pk": pk}
    locked = worker.rows().filter(**lane).order_by("pk").select_for_update()
    jobs = {each.pk: each for each in locked.only("state", "holder", "lease_until", "wait_reason")}
    job = jobs.pop(found.pk, None)
    if job is None:
        return None
    columns: dict[str, Any] = {"problem": NO_REASON} if job.wait_reason == RETRY else {}
    mine = worker.free(now).filter(pk=job.pk)
    if any(each.holder and each.lease_until and each.lease_until > now for each in jobs.values()):
        mine.update(wait_reason=ANOTHER, **columns)
        return None
    columns |= {"holder": uuid4(), "lease_until": now + job.lease, "wait_reason": ""}
    if not mine.update(**columns, **worker.begun(job, now)):
        return None
    return worker.rows().get(pk=job.pk)


def held(worker: Worker[J], job: J, now: datetime) -> J | None:
    """The job as it is now, held for another lease; None: it is not ours any more, or not to be worked
    on."""
    found = worker.rows().filter(pk=job.pk, holder=job.holder).first()
    return found if found is not None and found.renew(now) else None


def run(worker: Worker[J], pk: Any, now: datetime) -> bool:
    """Works on a job for a while; False where somebody else does, or where it is over."""
    job = claim(worker, pk, now)
    if job is None:
        return False
    end = time.monotonic() + TURN
    try:
        while (found := held(worker, job, timezone.now())) is not None:
            job = found
            more = worker.step(job)
            if isinstance(more, Wait):
                job.release(until=more.until, wait_reason=more.why)
                return True
            if not more:
                break
            if time.monotonic() >= end:
                job.release()
                start(job)
                return True
    except BrokerError as error:
        log.info("job waits for the broker", kind=kind_of(job), job=str(pk), reason=str(error))
        job.release(until=timezone.now() + PAUSE, problem=worker.problem_of(error))
        return True
    except Exception as error:
        # Another try follows: the rows hold what was done. What it says is not shown, for it may quote a
        # message.
        problem = WORKER_FAILED(type=type(error).__name__)
        job.release(until=timezone.now() + LONG_PAUSE, problem=problem)
        raise
    job.release()
    return True
