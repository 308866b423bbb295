"""A schedule as people say it: every so many minutes, daily at, weekly on, or a crontab. Pure: words to
fields and back."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import time
from typing import Any

from django.db import models
from django.utils.translation import gettext_lazy as _

from agents.models import Missed, Schedule

DAILY = re.compile(r"(\d{1,2}) (\d{1,2}) \* \* \*")
WEEKLY = re.compile(r"(\d{1,2}) (\d{1,2}) \* \* ([0-6](?:,[0-6])*)")


class Choice(models.TextChoices):
    NONE = "", _("no schedule")
    EVERY = "every", _("every so many minutes or hours")
    DAILY = "daily", _("every day at")
    WEEKLY = "weekly", _("on days of the week at")
    CRONTAB = "crontab", _("as a crontab says")


UNITS = {1: _("seconds"), 60: _("minutes"), 3600: _("hours"), 86_400: _("days")}


@dataclass(frozen=True, slots=True)
class ChosenSchedule:
    """The fields of a Schedule that people choose."""

    crontab: str = ""
    every_seconds: int | None = None
    time_zone: str = "UTC"
    missed: str = Missed.SKIP

    @classmethod
    def of(cls, schedule: Schedule) -> "ChosenSchedule":
        return cls(schedule.crontab, schedule.every_seconds, schedule.time_zone, schedule.missed)

    def put_into(self, schedule: Schedule) -> Schedule:
        schedule.crontab, schedule.every_seconds = self.crontab, self.every_seconds
        schedule.time_zone, schedule.missed = self.time_zone, self.missed
        return schedule


def in_words(schedule: Schedule | None) -> dict[str, Any]:
    """The values of the form's fields for a stored schedule."""
    if schedule is None:
        return {"choice": Choice.NONE, "zone": "UTC", "missed": Missed.SKIP}
    shown: dict[str, Any] = {
        "zone": schedule.time_zone,
        "missed": schedule.missed,
        "crontab": schedule.crontab,
    }
    if schedule.every_seconds is not None:
        unit = next(unit for unit in sorted(UNITS, reverse=True) if schedule.every_seconds % unit == 0)
        return shown | {"choice": Choice.EVERY, "number": schedule.every_seconds // unit, "unit": unit}
    if match := DAILY.fullmatch(schedule.crontab):
        return shown | {"choice": Choice.DAILY, "time": _clock(match)}
    if match := WEEKLY.fullmatch(schedule.crontab):
        return shown | {"choice": Choice.WEEKLY, "time": _clock(match), "days": match[3].split(",")}
    return shown | {"choice": Choice.CRONTAB}


def chosen_schedule(values: Mapping[str, Any]) -> ChosenSchedule | None:
    """Returns what the form's valid values mean; None for no schedule. Raises KeyError with the field that is
    missing."""
    choice = values.get("choice") or Choice.NONE
    if choice == Choice.NONE:
        return None
    zone, missed = values.get("zone") or "UTC", values.get("missed") or Missed.SKIP
    if choice == Choice.EVERY:
        return ChosenSchedule("", _required(values, "number") * int(values.get("unit") or 60), zone, missed)
    if choice == Choice.CRONTAB:
        return ChosenSchedule(" ".join(str(_required(values, "crontab")).split()), None, zone, missed)
    at = _required(values, "time")
    days = ",".join(sorted(_required(values, "days"))) if choice == Choice.WEEKLY else "*"
    return ChosenSchedule(f"{at.minute} {at.hour} * * {days}", None, zone, missed)


def _required(values: Mapping[str, Any], name: str) -> Any:
    if values.get(name) in (None, "", []):
        raise KeyError(name)
    return values[name]


def _clock(match: re.Match[str]) -> time | str:
    minute, hour = int(match[1]), int(match[2])
    return time(hour, minute) if minute < 60 and hour < 24 else ""
