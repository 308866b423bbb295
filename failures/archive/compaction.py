"""Days that are over and have many blocks become one block."""

from datetime import UTC, datetime, timedelta

from django.db.models import Count, Max, Min, Q, Sum

from failures.archive import planning
from failures.archive.cutting import Cut, day_of
from failures.models.archive import ArchiveBlock, BlockState

# A day with so many blocks or more, so long after its end.
MANY, AFTER = 8, timedelta(days=2)
# Rows of such a block; a day with more stays as it is.
MOST_ROWS = 2_000_000


def plan_kind(kind: str, now: datetime) -> None:
    """Only what is settled and computed: a job never finds a block under another number."""
    if ArchiveBlock.objects.filter(kind=kind, compacts=True, state=BlockState.PLANNED).exists():
        return
    blocks = ArchiveBlock.objects.filter(kind=kind, day__lt=day_of(now - AFTER).date(), rows__gt=0)
    blocks = blocks.exclude(state=BlockState.REPLACED)
    not_yet = Q(computed=False) | ~Q(state=BlockState.VERIFIED) | Q(settled_at=None, late_of=None)
    days = blocks.values("day").annotate(
        blocks=Count("pk"), rows_of_day=Sum("rows"), first_of_day=Min("first"), last_of_day=Max("last"),
        not_yet=Count("pk", filter=not_yet),
    )  # fmt: skip
    for each in days.filter(blocks__gte=MANY, not_yet=0, rows_of_day__lte=MOST_ROWS).order_by("day"):
        numbers = blocks.filter(day=each["day"]).order_by("number").values_list("number", flat=True)
        first, last = each["first_of_day"].astimezone(UTC), each["last_of_day"].astimezone(UTC)
        planning.add(
            kind, Cut(first, last), now, compacts=True, replaces=list(numbers), computed=True, settled_at=now
        )  # fmt: skip
