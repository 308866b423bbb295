"""Who works on a job: a lease that runs out when its worker dies, one job of a queue at a time.

The lease saves work, it is not what keeps letters safe: every step may run twice, and at the same time
elsewhere.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import Q, Value
from django.db.models.functions import Coalesce
from django.utils import timezone

from console.reasons import NO_REASON, Reason
from dlq.models import OPEN_JOBS, JobState, ReplayJob
from dlq.replay.routes import route

# How long a worker may be silent before another one takes the job over.
LEASE = timedelta(seconds=30)
# Stopped or cancelled, but not yet told apart: what was on its way is to be checked, the rest let go.
WINDING_UP = (JobState.CANCELLED, JobState.STOPPED)
WORKABLE = Q(state__in=OPEN_JOBS) | Q(state__in=WINDING_UP, finished_at=None)
ANOTHER = "another_job"


@transaction.atomic
def claim(job_id: UUID, now: datetime) -> bool:
    """Takes the job, unless it is over, somebody works on it, or on another one that takes from the same
    queue.

    Two workers that claim two jobs of a queue lock the same rows in the same order: the second sees the
    first.
    """
    source = ReplayJob.objects.filter(pk=job_id).values_list("source_queue", flat=True).first()
    if source is None:
        return False
    same = ReplayJob.objects.filter(WORKABLE, source_queue=source).order_by("pk").select_for_update()
    jobs = {job.pk: job for job in same.only("state", "lease_until", "wait_reason", "source_queue")}
    job = jobs.get(job_id)
    if job is None or _at_work(job, now) or (job.lease_until is not None and job.lease_until > now):
        return False
    if source and any(_at_work(other, now) for other in jobs.values()):
        ReplayJob.objects.filter(pk=job_id).update(wait_reason=ANOTHER)
        return False
    _take(job, now)
    return True


def _at_work(job: ReplayJob, now: datetime) -> bool:
    """A lease with a reason to wait is a pause, during which nobody moves anything."""
    return job.lease_until is not None and job.lease_until > now and not job.wait_reason


def _take(job: ReplayJob, now: datetime) -> None:
    begun = {
        "started_at": Coalesce("started_at", Value(now)),
        "lease_until": now + LEASE,
        "wait_reason": "",
        "walking_since": None,  # of a worker that died on its walk
    }
    jobs = ReplayJob.objects.filter(pk=job.pk)
    if job.state in OPEN_JOBS:
        jobs.update(**begun, state=JobState.RUNNING, problem=NO_REASON)
    else:
        jobs.update(**begun)
    if not job.source_queue:  # asked for before there were other actions than giving back
        row = jobs.get()
        way = route(row.action, row.setting_key)
        jobs.update(source_queue=way.source, target_queue=way.target)


def hold(job: ReplayJob, now: datetime, walked: int | None = None) -> bool:
    """Holds on to it for another while, if it is still ours and still in the state that we saw: false when a
    person paused or cancelled it, or another worker has it. `walked`: messages that its walk has seen so
    far."""
    until = now + LEASE
    mine = ReplayJob.objects.filter(pk=job.pk, state=job.state, lease_until=job.lease_until)
    seen = {} if walked is None else {"walked": walked}
    if not mine.update(lease_until=until, **seen):
        return False
    job.lease_until = until
    return True


@contextmanager
def walking(job: ReplayJob, queue: str) -> Iterator[Callable[[int], bool]]:
    """While the job walks a queue, its row says so. What it gives holds the job, as `hold`, with the messages
    seen.

    The columns are shown and decide nothing. Killed within: they stay until the lease is over, which ends
    what is shown; the next worker empties them.
    """
    began = timezone.now()
    row = ReplayJob.objects.filter(pk=job.pk)
    row.filter(lease_until=job.lease_until).update(walking_since=began, walking_queue=queue, walked=0)
    try:
        yield lambda seen: hold(job, timezone.now(), seen)
    finally:
        row.filter(walking_since=began).update(walking_since=None)


def release(
    job_id: UUID, *, until: datetime | None = None, problem: Reason = NO_REASON, why: str = ""
) -> None:
    """Lets others take the job, at once or when a pause is over; `why` is what it waits for, a stable
    word."""
    waiting = why if until else ""
    ReplayJob.objects.filter(WORKABLE, pk=job_id).update(
        lease_until=until, problem=problem, wait_reason=waiting
    )
