"""Decided windows are kept for a while, for people; nothing is decided from old ones."""

from datetime import datetime, timedelta

from agents.models import Schedule, Window
from agents.services.leases import once_per

KEPT = timedelta(days=90)
LOOKS_EVERY = timedelta(hours=1)
# At once of one schedule; more than the quickest schedule makes between two looks.
MOST = 5000


def forget_old_windows(now: datetime) -> int:
    """How many were deleted. What they started stays."""
    if not once_per("forget windows", LOOKS_EVERY, now):
        return 0
    return sum(_forget(schedule, now) for schedule in Schedule.objects.values_list("pk", flat=True))


def _forget(schedule: int, now: datetime) -> int:
    old = Window.objects.filter(schedule=schedule, due_at__lt=now - KEPT).order_by("due_at")
    found = list(old.values_list("pk", flat=True)[:MOST])
    return Window.objects.filter(pk__in=found).delete()[0] if found else 0
