"""A schedule in words people know, with the windows that come and those that were decided."""

from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.utils.formats import date_format

from agents.models import LaunchSetting, Schedule, ScheduledGroup, Window, WindowResult
from agents.schedules.text import describe
from agents.schedules.tick import upcoming
from console.ui.page import StateLabel

NEXT = 5
LAST = 8


@dataclass(frozen=True, slots=True)
class Coming:
    """A window that will be due. `local`: in the schedule's own zone, empty for an interval."""

    at: datetime
    local: str


@dataclass(frozen=True, slots=True)
class Scheduled:
    """`words` says when; `on` whether it starts anything now."""

    schedule: Schedule
    words: str
    on: bool
    coming: list[Coming]
    decided: list[tuple[Window, StateLabel]]


def scheduled(owner: LaunchSetting | ScheduledGroup, now: datetime) -> Scheduled | None:
    """Returns None for an owner without a schedule."""
    schedule = Schedule.objects.filter(**{_field(owner): owner}).first()
    if schedule is None:
        return None
    windows = schedule.windows.select_related("activation", "group_activation").order_by("-due_at")[:LAST]
    return Scheduled(
        schedule=schedule,
        words=describe(schedule),
        on=owner.enabled,
        coming=_coming(schedule, now),
        decided=[(window, RESULTS[window.result]) for window in windows],
    )


def _field(owner: LaunchSetting | ScheduledGroup) -> str:
    return "setting" if isinstance(owner, LaunchSetting) else "group"


def _coming(schedule: Schedule, now: datetime) -> list[Coming]:
    try:
        found = upcoming(schedule, now, NEXT)
        zone = ZoneInfo(schedule.time_zone)
    except (ValueError, ZoneInfoNotFoundError):  # stored by hand: the page says what is stored
        return []
    local = schedule.every_seconds is None
    return [Coming(due, _written(due.astimezone(zone)) if local else "") for due in found]


def _written(local: datetime) -> str:
    return f"{date_format(local, 'DATE_FORMAT')}, {local:%H:%M}"


RESULTS: dict[str, StateLabel] = {
    WindowResult.STARTED: StateLabel(WindowResult.STARTED.label, "ok", "play"),
    WindowResult.SKIPPED: StateLabel(WindowResult.SKIPPED.label, "warn", "warn"),
    WindowResult.HELD: StateLabel(WindowResult.HELD.label, "warn", "pause"),
}
