"""`ReplayJob.counts` and `skipped`: kept by whoever changes a dead letter of the job, in the same
transaction, so that no page counts a million items.

Locks are taken in one order, so that nobody waits in a circle: jobs by their key, all at once and before
anything of theirs is locked or changed (`lock`), then slices, items, dead letters. Whoever changes items
therefore begins with the jobs.

`counts` has a number for each state of items (`planned`, `given_back`, …) and for each outcome (`handled`,
`failed_again`, `dead_again`, `unknown`); what was replayed or is unconfirmed and has none of these waits.
AT_LEAST counts no items: it says that `total` is not exact before all is planned.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from uuid import UUID

from django.db import connection
from django.db.models import Count, Q, QuerySet
from django.utils import timezone

from console.database.bulk import WHOLE, values_table
from dlq.models import (
    OPEN_JOBS,
    Action,
    ItemState,
    JobState,
    Outcome,
    ReplayItem,
    ReplayJob,
    ReplaySlice,
    SliceState,
)

OUTCOMES = (Outcome.HANDLED, Outcome.FAILED_AGAIN, Outcome.DEAD_AGAIN, Outcome.UNKNOWN)
# What an outcome is awaited of.
LEFT = (ItemState.GIVEN_BACK, ItemState.UNCONFIRMED)


def lock(jobs: Iterable[UUID]) -> None:
    """Until the commit. Call it once, first in a transaction that changes items, with every job that it may
    concern."""
    rows = ReplayJob.objects.select_for_update(no_key=True).filter(pk__in=list(jobs)).order_by("pk")
    list(rows.values_list("pk", flat=True))


def add_counts(job: UUID, more: Mapping[str, int], skipped: Mapping[str, int] | None = None) -> None:
    """Call it in a transaction that has locked the job."""
    if not any(more.values()) and not any((skipped or {}).values()):
        return
    row = ReplayJob.objects.select_for_update(no_key=True).only("counts", "skipped").get(pk=job)
    _add(row.counts, more)
    _add(row.skipped, skipped or {})
    row.save(update_fields=["counts", "skipped"])


def _add(counts: dict[str, int], more: Mapping[str, int]) -> None:
    for name, number in more.items():
        counts[name] = counts.get(name, 0) + number


def total_of(counts: Mapping[str, int]) -> int:
    """Dead letters that are, or were, to be moved."""
    return sum(counts.get(state, 0) for state in ItemState.values) - counts.get(ItemState.SKIPPED, 0)


def recount(job: UUID) -> None:
    """Counts the items themselves: for a job that is being made, and that nobody else changes yet."""
    items = ReplayItem.objects.filter(job=job).order_by()
    counts = dict(items.values_list("state").annotate(Count("pk")))
    left_out = items.filter(state=ItemState.SKIPPED).values_list("why").annotate(Count("pk"))
    ReplayJob.objects.filter(pk=job).update(counts=counts, skipped=dict(left_out))


def left_count(counts: Mapping[str, int]) -> int:
    """Dead letters that left their queue by a move of ours, or perhaps by one."""
    return sum(int(counts.get(state, 0)) for state in LEFT)


def waiting_of(counts: Mapping[str, int]) -> int:
    """Counts those of which nothing was heard yet. Never below 0: an outcome may be known before the check of
    its slice."""
    return max(0, left_count(counts) - sum(int(counts.get(outcome, 0)) for outcome in OUTCOMES))


def waiting(job: ReplayJob) -> int:
    """What goes into the trash or out of it goes before no agent: nobody will say anything."""
    return 0 if job.action in (Action.DISCARD, Action.PUT_BACK) else waiting_of(job.counts)


# In the counts of an entry of the audit: replayed messages whose outcome was still open then.
OPEN_OUTCOMES = "open_outcomes"


def so_far(job: ReplayJob) -> dict[str, int]:
    """Returns `job.counts` for the audit, with what nothing was heard of yet: an entry is written at an
    instant, and outcomes arrive later."""
    still_open = waiting(job)
    return {**job.counts, OPEN_OUTCOMES: still_open} if still_open else dict(job.counts)


# -- items of many dead letters in one statement -------------------------------------------------------------
# The ORM would make an object and a tuple of each.


_FIELDS = [
    field for field in ReplayItem._meta.concrete_fields if not field.primary_key and not field.generated
]
_TABLE = ReplayItem._meta.db_table
_COLUMNS = ", ".join(f'"{field.column}"' for field in _FIELDS)


def write_items(
    job: ReplayJob,
    letters: Sequence[int],
    now: datetime,
    *,
    piece: ReplaySlice | None = None,
    state: str = ItemState.PLANNED,
    why: str = "",
) -> None:
    """An item of the job for each of these dead letters, in their order. One that another item has already
    gets none: the database lets one outstanding replay have a dead letter. Call it in a transaction."""
    if not letters:
        return
    same = ReplayItem(job=job, slice=piece, state=state, state_at=now, why=why)
    marks, values = [], []
    for field in _FIELDS:
        if field.attname == "letter_id":
            marks.append("letter")
        else:
            marks.append("%s")
            values.append(field.get_db_prep_save(getattr(same, field.attname), connection))
    given, parameters = values_table("given", {"letter": WHOLE}, [(letter,) for letter in letters])
    with connection.cursor() as cursor:
        cursor.execute(
            f"WITH {given} INSERT INTO {_TABLE} ({_COLUMNS}) SELECT {', '.join(marks)} FROM given "
            "WHERE true ON CONFLICT DO NOTHING",
            [*parameters, *values],
        )


# -- items still to move, found by slices, of which few are open among a million items -----------------------


def planned_of(job: ReplayJob) -> QuerySet[ReplayItem]:
    """Items that are planned. None of a slice that is checked: whoever checks it says of each what became of
    it."""
    slices = list(job.slices.exclude(state=SliceState.CHECKED).values_list("pk", flat=True))
    items: QuerySet[ReplayItem] = job.items.filter(state=ItemState.PLANNED)
    return items.filter(Q(slice__isnull=True) | Q(slice__pk__among=slices))


# -- which jobs a worker may take up, and what the row of one says while it walks a queue --------------------


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


# -- why an open job moves nothing now, as a code, also where no worker wrote one down -----------------------


QUEUED, WALKING, RETRY = "queued", "walking", "retry"


def is_walking(job: ReplayJob, now: datetime) -> bool:
    """Says so while the worker has its lease: without it the worker is dead, and its walk with it."""
    return job.walking_since is not None and _is_held(job, now)


def reason_to_wait(job: ReplayJob, now: datetime) -> str:
    """Empty while its messages move, and where no worker is to take it up: it is over, paused, or not
    approved yet."""
    if job.state not in OPEN_JOBS and not (job.state in WINDING_UP and job.finished_at is None):
        return ""
    if is_walking(job, now):
        return WALKING
    if job.wait_reason:
        return job.wait_reason
    if not _is_held(job, now):
        return QUEUED
    # Nobody has it for some seconds, and not because it waits for something.
    return RETRY if job.holder is None and job.state in OPEN_JOBS else ""


def _is_held(job: ReplayJob, now: datetime) -> bool:
    return job.lease_until is not None and job.lease_until > now


# Why a job waits, and the code of why it was paused by itself.
STOPPING, CONSUMERS_OPEN = "stopping", "consumers_open"
# And for the message that blocks the ordered subscription of another destination.
BLOCKED, TARGET_BLOCKED = "blocked", "target_blocked"
