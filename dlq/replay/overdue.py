"""What nothing was heard of for an hour is unknown: whoever waits for outcomes waits no longer.

Later facts take its place (`joining`). Every row is changed by a conditional UPDATE in one transaction with
the counts of its job: killed at any point, the next look ends the rest.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Q

from dlq import crash
from dlq.models import ItemState, LetterState, Outcome, ReplayItem, ReplayJob
from dlq.models.replay import DELIVERING
from dlq.replay import counting, marking

# From the move of a letter on.
PATIENCE = timedelta(hours=1)
AT_ONCE = 1000


def end_overdue(now: datetime) -> Iterator[ReplayJob]:
    """Job by job, the oldest first, of those whose letters may wait for outcomes still."""
    jobs = ReplayJob.objects.filter(outcomes_ended_at=None).filter(~Q(started_at=None) | ~Q(finished_at=None))
    for job in jobs.order_by("created_at", "pk").iterator(chunk_size=200):
        while _end_some(job, now):
            pass
        _end_job(job, now)
        yield job


def _end_some(job: ReplayJob, now: datetime) -> bool:
    """Whether there may be more."""
    silent = Q(state=ItemState.UNCONFIRMED, released_as=ItemState.UNCONFIRMED)
    if job.action in DELIVERING:
        silent |= Q(state=ItemState.GIVEN_BACK, released_as="")
    before = now - PATIENCE
    moved = Q(slice__moved_at__lte=before) | Q(slice__moved_at=None, state_at__lte=before)
    overdue = ReplayItem.objects.filter(silent, moved, job=job, outcome=Outcome.WAITING)
    with transaction.atomic():
        counting.lock([job.pk])
        found = (
            overdue.select_for_update(of=("self",)).order_by("pk").values_list("pk", "state", "letter__state")
        )
        rows = list(found[:AT_ONCE])
        # It lies in its queue again: whoever had it let go of it.
        back = [
            pk for pk, state, letter in rows if (state, letter) == (ItemState.UNCONFIRMED, LetterState.DEAD)
        ]
        marking.not_ours(job, back, now)
        ids = [pk for pk, _, _ in rows if pk not in frozenset(back)]
        ReplayItem.objects.filter(pk__in=ids).update(outcome=Outcome.UNKNOWN, outcome_at=now)
        crash.point("overdue")
        counting.add(job.pk, {Outcome.UNKNOWN: len(ids)})
    return len(rows) == AT_ONCE


def _end_job(job: ReplayJob, now: datetime) -> None:
    """Once it is over and none of its letters waits. Whatever is heard later is told all the same."""
    waiting = ReplayItem.objects.filter(job=job, state__in=counting.LEFT, outcome=Outcome.WAITING)
    if job.action not in DELIVERING:
        waiting = waiting.filter(state=ItemState.UNCONFIRMED)
    if not waiting.exists():
        ReplayJob.objects.filter(~Q(finished_at=None), pk=job.pk).update(outcomes_ended_at=now)
