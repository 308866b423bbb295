"""A schedule in words people know, with the windows that come and those that were decided."""

import re
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from agents.models import LaunchSetting, Schedule, ScheduledGroup, Window, WindowResult
from agents.pages.amounts import duration, number
from agents.pages.shown import Shown
from agents.services.windows import Timetable, next_windows

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
    decided: list[tuple[Window, Shown]]


def scheduled(owner: LaunchSetting | ScheduledGroup, now: datetime) -> Scheduled | None:
    """None for an owner without a schedule."""
    schedule = Schedule.objects.filter(**{_field(owner): owner}).first()
    if schedule is None:
        return None
    windows = schedule.windows.select_related("activation", "group_activation").order_by("-due_at")[:LAST]
    return Scheduled(
        schedule=schedule,
        words=in_words(schedule),
        on=owner.enabled,
        coming=_coming(schedule, now),
        decided=[(window, RESULTS[window.result]) for window in windows],
    )


def _field(owner: LaunchSetting | ScheduledGroup) -> str:
    return "setting" if isinstance(owner, LaunchSetting) else "group"


def timetable(schedule: Schedule) -> Timetable:
    return Timetable(schedule.crontab, schedule.time_zone, schedule.every_seconds)


def _coming(schedule: Schedule, now: datetime) -> list[Coming]:
    try:
        found = next_windows(timetable(schedule), now, NEXT)
        zone = ZoneInfo(schedule.time_zone)
    except (ValueError, ZoneInfoNotFoundError):  # stored by hand: the page says what is stored
        return []
    local = schedule.every_seconds is None
    return [Coming(due, f"{due.astimezone(zone):%Y-%m-%d %H:%M}" if local else "") for due in found]


RESULTS: dict[str, Shown] = {
    WindowResult.STARTED: Shown(WindowResult.STARTED.label, "ok", "play"),
    WindowResult.SKIPPED: Shown(WindowResult.SKIPPED.label, "warn", "warn"),
}


def in_words(schedule: Schedule) -> str:
    """`every day at 02:30 (Europe/Berlin)`; what has no short words is told as the crontab that it is."""
    if schedule.every_seconds:
        return _("every %(duration)s") % {"duration": duration(schedule.every_seconds)}
    return _("%(when)s (%(zone)s)") % {"when": crontab_in_words(schedule.crontab), "zone": schedule.time_zone}


def crontab_in_words(crontab: str) -> str:
    fields = crontab.split()
    raw = _("crontab %(crontab)s") % {"crontab": crontab}
    if len(fields) != 5 or fields[3] != "*":
        return raw
    minute, hour, day, _month, weekday = fields
    when = _time_of_day(minute, hour)
    if not when:
        return raw
    if day == weekday == "*":
        return when if hour == "*" or hour.startswith("*/") else _("every day %(at)s") % {"at": when}
    if day == "*":
        names = _weekdays(weekday)
        return _("%(days)s %(at)s") % {"days": names, "at": when} if names else raw
    if weekday == "*" and day.isdecimal():
        return _("on day %(day)s of the month %(at)s") % {"day": day, "at": when}
    return raw


def _time_of_day(minute: str, hour: str) -> str:
    if minute.isdecimal() and hour.isdecimal():
        return _("at %(time)s") % {"time": f"{int(hour):02}:{int(minute):02}"}
    if minute == "*" and hour == "*":
        return _("every minute")
    if hour == "*" and (match := re.fullmatch(r"\*/(\d+)", minute)):
        text = ngettext("every %(n)s minute", "every %(n)s minutes", int(match[1]))
        return text % {"n": number(int(match[1]))}
    if minute.isdecimal() and hour == "*":
        return _("every hour at minute %(minute)s") % {"minute": f"{int(minute):02}"}
    if minute.isdecimal() and (match := re.fullmatch(r"\*/(\d+)", hour)):
        text = ngettext(
            "every %(n)s hour at minute %(minute)s", "every %(n)s hours at minute %(minute)s", int(match[1])
        )
        return text % {"n": number(int(match[1])), "minute": f"{int(minute):02}"}
    if minute.isdecimal() and re.fullmatch(r"\d+(,\d+)+", hour):
        times = ", ".join(f"{int(each):02}:{int(minute):02}" for each in hour.split(","))
        return _("at %(time)s") % {"time": times}
    return ""


NAMES = {"sun": 0, "mon": 1, "tue": 2, "wed": 3, "thu": 4, "fri": 5, "sat": 6}


def _weekdays(field: str) -> str:
    """`Monday, Friday`; empty for what is no plain list or range of days."""
    days: list[int] = []
    for part in field.lower().split(","):
        first, dash, last = part.partition("-")
        ends = [NAMES.get(each, int(each) % 7 if each.isdecimal() else -1) for each in (first, last) if each]
        if not ends or min(ends) < 0 or (dash and len(ends) != 2):
            return ""
        begin, end = ends[0], ends[-1]
        days += [day % 7 for day in range(begin, (end if end >= begin else end + 7) + 1)]
    if [day % 7 for day in days] == [1, 2, 3, 4, 5]:
        return _("on working days")
    # 1970-01-04 was a Sunday.
    names = [date_format(datetime(1970, 1, 4 + day, tzinfo=timezone.get_default_timezone()), "l") for day in days]
    return _("every %(days)s") % {"days": ", ".join(names)}
