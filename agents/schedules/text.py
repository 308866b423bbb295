"""A schedule in words, in the reader's language: “every day at 02:30, Europe/Berlin”. Pure.

The package cron-descriptor knows Russian only half: its names of days are English.
"""

from collections.abc import Collection, Sequence

from django.utils.dates import MONTHS, WEEKDAYS
from django.utils.translation import get_language, ngettext
from django.utils.translation import gettext as _

from agents import crontab as crontabs
from agents.crontab import Fields
from agents.models import Schedule

# More clock times than that are no longer read.
CLOCK_TIMES = 6
DAY, HOUR, MINUTE = 86_400, 3600, 60


def describe(schedule: Schedule) -> str:
    if schedule.every_seconds is not None:
        return interval_in_words(schedule.every_seconds)
    return crontab_in_words(schedule.crontab, schedule.time_zone)


def interval_in_words(seconds: int) -> str:
    if seconds % DAY == 0:
        return _every_days(seconds // DAY)
    if seconds % HOUR == 0:
        return _every_hours(seconds // HOUR)
    if seconds % MINUTE == 0:
        return _every_minutes(seconds // MINUTE)
    return ngettext("every %(count)s second", "every %(count)s seconds", seconds) % {"count": seconds}


def crontab_in_words(crontab: str, time_zone: str) -> str:
    """`crontab` is valid."""
    fields = crontabs.crontab_fields(crontab)
    days, times, months = _days(fields), _times(fields), _months(fields)
    text = f"{days} {times}" if days else times
    if months:
        text = _("%(text)s, only in %(months)s") % {"text": text, "months": months}
    return f"{text}, {time_zone}"


def _times(fields: Fields) -> str:
    minutes, hours = sorted(fields.minutes), sorted(fields.hours)
    if fields.hours == crontabs.ALL_HOURS:
        if minutes == [0]:
            return _every_hours(1)
        if step := _step(minutes, 60):
            return _every_minutes(step)
        return _("every hour, minutes: %(minutes)s") % {"minutes": _ranges(minutes)}
    if minutes == [0] and (step := _step(hours, 24)):
        return _every_hours(step)
    if len(minutes) * len(hours) <= CLOCK_TIMES:
        clock = [f"{hour:02}:{minute:02}" for hour in hours for minute in minutes]
        return _("at %(times)s") % {"times": ", ".join(clock)}
    if step := _step(minutes, 60):
        return _("%(every)s past hour %(hours)s") % {
            "every": _every_minutes(step),
            "hours": _ranges(hours),
        }
    return _("at minute %(minutes)s past hour %(hours)s") % {
        "minutes": _ranges(minutes),
        "hours": _ranges(hours),
    }


def _days(fields: Fields) -> str:
    """Empty where every day is meant and the times say “every” themselves."""
    days, weekdays = _days_of_month(fields), _weekdays(fields)
    if days and weekdays:
        word = (
            _("%(days)s or on %(weekdays)s")
            if fields.either
            else _("%(days)s, but only if the weekday is %(weekdays)s")
        )
        return word % {"days": days, "weekdays": weekdays}
    if days or weekdays:
        return days or _("on %(weekdays)s") % {"weekdays": weekdays}
    clock_times = len(fields.minutes) * len(fields.hours) <= CLOCK_TIMES
    often = sorted(fields.minutes) == [0] and _step(sorted(fields.hours), 24)
    return _every_days(1) if clock_times and not often else ""


def _days_of_month(fields: Fields) -> str:
    if fields.days >= crontabs.ALL_DAYS:
        return ""
    words = []
    if numbers := sorted(day for day in fields.days if day > 0):
        words.append(_("on day %(days)s of the month") % {"days": _ranges(numbers)})
    if crontabs.LAST_DAY in fields.days:
        words.append(_("on the last day of the month"))
    if crontabs.LAST_WORKDAY in fields.days:
        words.append(_("on the last working day of the month"))
    return ", ".join(words)


def _weekdays(fields: Fields) -> str:
    if fields.weekdays >= crontabs.ALL_WEEKDAYS:
        return ""
    # Weeks begin with Monday here.
    numbers = sorted((day - 1) % 7 for day in fields.weekdays)
    words = [_ranges(numbers, [_named(WEEKDAYS[day]) for day in range(7)])] if numbers else []
    for day, number in sorted(fields.nth_weekdays):
        name = _named(WEEKDAYS[(day - 1) % 7])
        if number == crontabs.LAST_DAY:
            words.append(_("the last %(day)s of the month") % {"day": name})
        else:
            words.append(_("%(day)s (no. %(number)s of the month)") % {"day": name, "number": number})
    return ", ".join(words)


def _months(fields: Fields) -> str:
    if fields.months == crontabs.ALL_MONTHS:
        return ""
    return _ranges(sorted(fields.months), ["", *(_named(MONTHS[month]) for month in range(1, 13))])


def _named(name: object) -> str:
    """Names of days and months are written small within a sentence, except in English."""
    return str(name) if (get_language() or "en").startswith("en") else str(name).lower()


def _step(numbers: Sequence[int], size: int) -> int:
    """n where these are 0, n, 2n, … and n divides `size`, else 0; a single one is no step."""
    step = size // len(numbers)
    if len(numbers) == 1:
        return 0
    return step if list(numbers) == list(range(0, size, step)) else 0


def _ranges(numbers: Collection[int], names: Sequence[str] = ()) -> str:
    """1, 2, 3, 5 → “1–3, 5”; two neighbours stay two."""
    spans: list[list[int]] = []
    for number in numbers:
        if spans and number == spans[-1][-1] + 1:
            spans[-1].append(number)
        else:
            spans.append([number])
    words = []
    for span in spans:
        shown = [names[number] if names else str(number) for number in span]
        words += [f"{shown[0]}–{shown[-1]}"] if len(shown) > 2 else shown
    return ", ".join(words)


# One is a word of its own: in Russian the form for 1 serves 21 and 31 too.


def _every_minutes(count: int) -> str:
    if count == 1:
        return _("every minute")
    return ngettext("every %(count)s minute", "every %(count)s minutes", count) % {"count": count}


def _every_hours(count: int) -> str:
    if count == 1:
        return _("every hour")
    return ngettext("every %(count)s hour", "every %(count)s hours", count) % {"count": count}


def _every_days(count: int) -> str:
    if count == 1:
        return _("every day")
    return ngettext("every %(count)s day", "every %(count)s days", count) % {"count": count}
