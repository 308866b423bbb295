"""`ReplayJob.counts` and `skipped`: kept by whoever changes a letter of the job, in the same transaction, so that no
page counts a million items.

`counts` has a number for each state of items (`planned`, `given_back`, …) and for each outcome (`handled`,
`failed_again`, `dead_again`); what was given back and has none of these waits.
"""

from collections.abc import Mapping
from uuid import UUID

from django.db.models import Count

from dlq.models import Action, ItemState, Outcome, ReplayItem, ReplayJob

OUTCOMES = (Outcome.HANDLED, Outcome.FAILED_AGAIN, Outcome.DEAD_AGAIN)


def add(job: UUID, more: Mapping[str, int], skipped: Mapping[str, int] | None = None) -> None:
    """Call it last in the transaction that changes the items: it locks the job until the commit."""
    if not any(more.values()) and not any((skipped or {}).values()):
        return
    row = ReplayJob.objects.select_for_update().only("counts", "skipped").get(pk=job)
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


def moved(job: ReplayJob) -> int:
    """Letters that left their queue."""
    return int(job.counts.get(ItemState.GIVEN_BACK, 0))


def waiting(job: ReplayJob) -> int:
    """Of these, the ones of which no KMA has said anything yet. Never below 0: an outcome may be known before the check
    of its slice. What goes into the bin or out of it goes before no agent: nobody will say anything."""
    if job.action in (Action.DISCARD, Action.PUT_BACK):
        return 0
    return max(0, moved(job) - sum(int(job.counts.get(outcome, 0)) for outcome in OUTCOMES))
