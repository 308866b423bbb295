"""Finished replay jobs and the audit, kept for a time of their own.

The audit is only ever added to: nothing here or elsewhere changes an entry, and by its age alone, where the
site has chosen an age, `forget_old_audit` deletes it. There is no other way.
"""

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from uuid import UUID

from django.conf import settings
from django.db.models import Exists, OuterRef, Q, QuerySet

from console.audit.models import AuditEntry
from console.database.storage import raw_delete
from dlq.models import (
    ItemState,
    LetterEdit,
    Outcome,
    ReplayItem,
    ReplayJob,
    ReplaySlice,
)
from dlq.models.replay import DELIVERING, UNFINISHED_JOBS
from insights.archive.planning import archived_before
from retention.ages.limits import before, delete_all
from retention.batches import Chunks

REPLAYS, AUDIT = "replays", "audit"
JOBS_AT_ONCE = 100


def forget_old_replays(now: datetime, chunks: Chunks) -> None:
    """Job by job: its items with their edits, a chunk at a time, its slices, then the job. Killed in between,
    the job is still there and old. Raises TimeIsUp."""
    if (older := before(now, settings.MA_KEEP_REPLAYS_DAYS)) is None:
        return
    older = min(older, archived_before("replays", now) or older)
    while jobs := list(_over(older).values_list("pk", flat=True)[:JOBS_AT_ONCE]):
        for pk in jobs:
            _forget(pk, chunks)


def _forget(pk: UUID, chunks: Chunks) -> None:
    delete_all("replay_items", partial(_keys, ReplayItem.objects.filter(job=pk)), _delete_items, chunks)
    delete_all("replay_slices", partial(_keys, ReplaySlice.objects.filter(job=pk)), _delete_slices, chunks)
    delete_all(REPLAYS, partial(_keys, ReplayJob.objects.filter(pk=pk)), _delete_jobs, chunks)


def forget_old_audit(now: datetime, chunks: Chunks) -> None:
    """In the order of the numbers, which grow with time; they are never given again. Raises TimeIsUp."""
    if (older := before(now, settings.MA_KEEP_AUDIT_DAYS)) is None:
        return
    delete_all(AUDIT, lambda n: _oldest_entries(older, n), _delete_entries, chunks)


def _over(older: datetime) -> QuerySet[ReplayJob]:
    """Finished before, and of which nothing is awaited: a letter that left still waits for what becomes of
    it, or for the end of the hour after which that is unknown."""
    waiting = ReplayItem.objects.filter(
        Q(released_as="", state=ItemState.GIVEN_BACK) | Q(released_as=ItemState.UNCONFIRMED),
        job=OuterRef("pk"),
        outcome=Outcome.WAITING,
    )
    finished = ReplayJob.objects.filter(finished_at__lt=older).exclude(state__in=UNFINISHED_JOBS)
    return finished.filter(~Exists(waiting) | ~Q(action__in=DELIVERING)).order_by("finished_at", "pk")


def _oldest_entries(older: datetime, n: int) -> list[int]:
    """The first ones, as long as they are old: one of a clock that ran ahead holds those behind it for a
    while."""
    first = AuditEntry.objects.order_by("pk").values_list("pk", "at")[:n]
    keys = []
    for pk, at in first:
        if at >= older:
            break
        keys.append(pk)
    return keys


def _keys(
    rows: QuerySet[ReplayItem] | QuerySet[ReplaySlice] | QuerySet[ReplayJob], n: int
) -> list[int | UUID]:
    return list(rows.order_by().values_list("pk", flat=True)[:n])


def _delete_items(keys: Sequence[int]) -> int:
    LetterEdit.objects.filter(item__in=keys).delete()
    return raw_delete(ReplayItem.objects.filter(pk__in=keys))


def _delete_slices(keys: Sequence[int]) -> int:
    return raw_delete(ReplaySlice.objects.filter(pk__in=keys))


def _delete_jobs(keys: Sequence[UUID]) -> int:
    return raw_delete(ReplayJob.objects.filter(pk__in=keys))


def _delete_entries(keys: Sequence[int]) -> int:
    """Past the guard of the model, which refuses every delete."""
    return raw_delete(AuditEntry.objects.filter(pk__in=keys))
