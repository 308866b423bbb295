"""`ReplayJob.counts` and `skipped`: kept by whoever changes a letter of the job, in the same transaction, so
that no page counts a million items.

Locks are taken in one order, so that nobody waits in a circle: jobs by their key, all at once and before
anything of theirs is locked or changed (`lock`), then slices, items, letters. Whoever changes items therefore
begins with the jobs.

`counts` has a number for each state of items (`planned`, `given_back`, …) and for each outcome (`handled`,
`failed_again`, `dead_again`, `unknown`); what was given back or is unconfirmed and has none of these waits.
"""

from collections.abc import Iterable, Mapping
from uuid import UUID

from django.db.models import Count

from dlq.models import Action, ItemState, Outcome, ReplayItem, ReplayJob

OUTCOMES = (Outcome.HANDLED, Outcome.FAILED_AGAIN, Outcome.DEAD_AGAIN, Outcome.UNKNOWN)
# What an outcome is awaited of.
LEFT = (ItemState.GIVEN_BACK, ItemState.UNCONFIRMED)


def lock(jobs: Iterable[UUID]) -> None:
    """Until the commit. Call it once, first in a transaction that changes items, with every job that it may
    concern."""
    rows = ReplayJob.objects.select_for_update(no_key=True).filter(pk__in=list(jobs)).order_by("pk")
    list(rows.values_list("pk", flat=True))


def add(job: UUID, more: Mapping[str, int], skipped: Mapping[str, int] | None = None) -> None:
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
    """Letters that are, or were, to be moved."""
    return sum(counts.get(state, 0) for state in ItemState.values) - counts.get(ItemState.SKIPPED, 0)


def recount(job: UUID) -> None:
    """From the items themselves: for a job that is being made, and that nobody else changes yet."""
    items = ReplayItem.objects.filter(job=job).order_by()
    counts = dict(items.values_list("state").annotate(Count("pk")))
    left_out = items.filter(state=ItemState.SKIPPED).values_list("why").annotate(Count("pk"))
    ReplayJob.objects.filter(pk=job).update(counts=counts, skipped=dict(left_out))


def left(counts: Mapping[str, int]) -> int:
    """Letters that left their queue by a move of ours, or perhaps by one."""
    return sum(int(counts.get(state, 0)) for state in LEFT)


def waiting_of(counts: Mapping[str, int]) -> int:
    """Of these, the ones of which nothing was heard yet. Never below 0: an outcome may be known before the
    check of its slice."""
    return max(0, left(counts) - sum(int(counts.get(outcome, 0)) for outcome in OUTCOMES))


def waiting(job: ReplayJob) -> int:
    """What goes into the bin or out of it goes before no agent: nobody will say anything."""
    return 0 if job.action in (Action.DISCARD, Action.PUT_BACK) else waiting_of(job.counts)
