"""What holds new starts now, read in two queries."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfoNotFoundError

from agents.freezes.rules import Frozen, longest, next_window, open_window, stands
from agents.models import Freeze, GroupMember, LaunchSetting, MaintenanceWindow, ScheduledGroup
from agents.timetable import Timetable

STANDING = ("pk", "pool", "pool__name", "by_name", "reason", "at", "ends_at")


@dataclass(frozen=True, slots=True)
class FrozenScopes:
    """Everything that holds new starts at an instant."""

    found: Sequence[Frozen]

    def of(self, pools: Iterable[int]) -> Frozen | None:
        """Returns what holds a start that needs each of these pools: of several the one that ends last."""
        needed = {None, *pools}
        return longest(each for each in self.found if each.pool in needed)

    def only(self, pool: int | None) -> Frozen | None:
        """Returns what holds just this scope, whatever holds the installation."""
        return longest(each for each in self.found if each.pool == pool)


def frozen_now(now: datetime) -> FrozenScopes:
    """Returns what stands for the installation and for every pool."""
    rows = Freeze.objects.filter(lifted_at=None).order_by("pk").values_list(*STANDING)
    freezes = [
        Frozen(pool, name or "", by, why, since, until, freeze=pk)
        for pk, pool, name, by, why, since, until in rows
        if stands(None, until, now)
    ]
    windows = MaintenanceWindow.objects.select_related("pool").order_by("pk")
    return FrozenScopes([*freezes, *filter(None, (_open(window, now) for window in windows))])


def pools_of(owner: LaunchSetting | ScheduledGroup) -> set[int]:
    """Returns the pools that a start of it needs: of a group those of all members."""
    if isinstance(owner, LaunchSetting):
        return {owner.pool_id}
    return set(GroupMember.objects.filter(group=owner).values_list("setting__pool_id", flat=True))


def next_opening(window: MaintenanceWindow, now: datetime) -> datetime | None:
    """Returns when it opens next; None where that cannot be read."""
    try:
        return next_window(timetable_of_window(window), now)
    except (ValueError, ZoneInfoNotFoundError):  # stored by hand: the page says what is stored
        return None


def open_until(window: MaintenanceWindow, now: datetime) -> datetime | None:
    """Returns when it closes; None while it is not open."""
    frozen = _open(window, now)
    return frozen.until if frozen else None


def timetable_of_window(window: MaintenanceWindow) -> Timetable:
    return Timetable(window.crontab, window.time_zone)


def _open(window: MaintenanceWindow, now: datetime) -> Frozen | None:
    try:
        span = open_window(
            timetable_of_window(window), timedelta(minutes=window.minutes), window.lifted_at, now
        )
    except (ValueError, ZoneInfoNotFoundError):  # stored by hand; it must not keep everything from starting
        return None
    if span is None:
        return None
    pool: Any = window.pool
    name = pool.name if pool else ""
    return Frozen(window.pool_id, name, "", window.reason, *span, maintenance=window.pk)
