"""Up to where the windows of a schedule are decided. Decided ones are kept for a while, for people; nothing
is decided from old ones."""

from datetime import datetime, timedelta

from agents.models import LaunchSetting, Schedule, ScheduledGroup, Window
from console.jobs.locks import once_per

KEPT = timedelta(days=90)
LOOKS_EVERY = timedelta(hours=1)
# At once of one schedule; more than the quickest schedule makes between two looks.
MOST = 5000


def pass_over_windows(owner: LaunchSetting | ScheduledGroup, now: datetime) -> None:
    """To be called where a setting or a group is enabled, in the same transaction: what was due while it was
    off is decided, and enabling never starts it."""
    kind = "group" if isinstance(owner, ScheduledGroup) else "setting"
    Schedule.objects.filter(**{kind: owner}).update(decided_up_to=now)


def forget_old_windows(now: datetime) -> int:
    """How many were deleted. What they started stays."""
    if not once_per("forget windows", LOOKS_EVERY, now):
        return 0
    return sum(_forget(schedule, now) for schedule in Schedule.objects.values_list("pk", flat=True))


def _forget(schedule: int, now: datetime) -> int:
    old = Window.objects.filter(schedule=schedule, due_at__lt=now - KEPT).order_by("due_at")
    found = list(old.values_list("pk", flat=True)[:MOST])
    return Window.objects.filter(pk__in=found).delete()[0] if found else 0
