"""What a job has still to move: found by its slices, of which few are open, among a million items."""

from django.db.models import Q, QuerySet

from dlq.models import ItemState, ReplayItem, ReplayJob, SliceState


def planned_of(job: ReplayJob) -> QuerySet[ReplayItem]:
    """Items that are planned. None of a slice that is checked: whoever checks it says of each what became of
    it."""
    slices = list(job.slices.exclude(state=SliceState.CHECKED).values_list("pk", flat=True))
    items: QuerySet[ReplayItem] = job.items.filter(state=ItemState.PLANNED)
    return items.filter(Q(slice__isnull=True) | Q(slice__pk__among=slices))
