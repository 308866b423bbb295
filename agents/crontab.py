"""Decides what a person may write as a crontab and as a time zone. Pure.

Five fields, as Debian's cron reads them: where day of month *and* day of week are restricted, either one is
enough.
"""

import zoneinfo
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache

from cronsim import CronSim, CronSimError
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

# No time zones, though the system lists them.
NO_ZONES = frozenset({"Factory", "localtime"})
ALL_HOURS = frozenset(range(24))
ALL_DAYS = frozenset(range(1, 32))
ALL_MONTHS = frozenset(range(1, 13))
ALL_WEEKDAYS = frozenset(range(7))
LAST_DAY = CronSim.LAST
LAST_WORKDAY = CronSim.LAST_WEEKDAY


@dataclass(frozen=True, slots=True)
class Fields:
    """A crontab, expanded. `days` may hold LAST_DAY and LAST_WORKDAY; `nth_weekdays` are (weekday, n), n =
    LAST_DAY for the last one of the month. Weekdays count from 0, Sunday. `either`: a day of the month or a
    weekday is enough."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    nth_weekdays: frozenset[tuple[int, int]]
    either: bool


def crontab_fields(crontab: str) -> Fields:
    """Raises ValidationError."""
    parsed = _parsed(crontab)
    weekdays = frozenset(day % 7 for day in parsed.weekdays if isinstance(day, int))
    nth = frozenset((day[0] % 7, day[1]) for day in parsed.weekdays if isinstance(day, tuple))
    return Fields(
        frozenset(parsed.minutes),
        frozenset(parsed.hours),
        frozenset(parsed.days),
        frozenset(parsed.months),
        weekdays,
        nth,
        either=not parsed.day_and,
    )


def check_crontab(value: str) -> None:
    """Raises ValidationError, also for a crontab that names no instant of the next 50 years."""
    parsed = _parsed(value)
    if next(parsed, None) is None:
        raise _never(value)


def check_time_zone(value: str) -> None:
    if value not in time_zones():
        text = _("Unknown time zone “%(name)s”. Use a name such as Europe/Berlin or UTC.")
        raise ValidationError(text, code="unknown_time_zone", params={"name": value})


@lru_cache(maxsize=1)
def time_zones() -> tuple[str, ...]:
    """Every name that a schedule may have, in order: what a form offers."""
    return tuple(sorted(zoneinfo.available_timezones() - NO_ZONES))


def _parsed(crontab: str) -> CronSim:
    """Begins now: what a crontab means does not depend on it."""
    if len(crontab.split()) != 5:
        text = _(
            "A crontab needs five fields: minute, hour, day of month, month, day of week; for "
            "example 30 2 * * *."
        )
        raise ValidationError(text, code="crontab_fields")
    try:
        return CronSim(crontab, datetime.now(UTC))
    except ValueError as error:  # of int(), above 4300 digits
        raise ValidationError(_("Invalid crontab: a number is too long."), code="crontab") from error
    except CronSimError as error:
        if str(error) == "Bad day-of-month" and _days_alone_are_fine(crontab):
            raise _never(crontab) from error
        text = _("Invalid value in the crontab field “%(field)s”.")
        raise ValidationError(text, code="crontab", params={"field": _field_name(str(error))}) from error


def _days_alone_are_fine(crontab: str) -> bool:
    minute, hour, day, _month, _weekday = crontab.split()
    try:
        CronSim(f"{minute} {hour} {day} * *", datetime.now(UTC))
    except CronSimError:
        return False
    return True


def _never(crontab: str) -> ValidationError:
    text = _("“%(crontab)s” never runs: no calendar day matches it.")
    return ValidationError(text, code="crontab_never", params={"crontab": crontab})


def _field_name(problem: str) -> str:
    names = {
        "Bad minute": _("minute"),
        "Bad hour": _("hour"),
        "Bad day-of-month": _("day of month"),
        "Bad month": _("month"),
        "Bad day-of-week": _("day of week"),
    }
    return names.get(problem, problem)
