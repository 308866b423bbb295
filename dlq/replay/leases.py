"""Which jobs a worker may take up, and what the row of one says while it walks a queue."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from django.db.models import Q
from django.utils import timezone

from dlq.models import OPEN_JOBS, JobState, ReplayJob

# Stopped or cancelled, but not yet told apart: what was on its way is to be checked, the rest let go.
WINDING_UP = (JobState.CANCELLED, JobState.STOPPED)
WORKABLE = Q(state__in=OPEN_JOBS) | Q(state__in=WINDING_UP, finished_at=None)


@contextmanager
def walking(job: ReplayJob, queue: str) -> Iterator[Callable[[int], bool]]:
    """While the job walks a queue, its row says so. What it gives renews the job's lease, with the messages
    seen.

    The columns are shown and decide nothing. Killed within: they stay until the lease is over, which ends
    what is shown; the next worker empties them.
    """
    began = timezone.now()
    row = ReplayJob.objects.filter(pk=job.pk)
    row.filter(holder=job.holder).update(walking_since=began, walking_queue=queue, walked=0)
    try:
        yield lambda seen: job.renew(timezone.now(), walked=seen)
    finally:
        row.filter(walking_since=began).update(walking_since=None)
