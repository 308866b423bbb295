"""A schedule as people say it, every so many minutes, daily at, weekly on, or a crontab; and its fields
inside the form of its owner: a setting or a group."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import time
from typing import Any

from django import forms
from django.contrib.admin.widgets import AdminTextInputWidget
from django.core.exceptions import NON_FIELD_ERRORS, ValidationError
from django.db import models
from django.utils import timezone
from django.utils.dates import WEEKDAYS
from django.utils.translation import gettext, gettext_lazy
from django.utils.translation import gettext_lazy as _

from agents.crontab import time_zones
from agents.models import Missed, Schedule, ScheduledGroup
from agents.schedules.tick import delete_schedule, save_schedule

DAILY = re.compile(r"(\d{1,2}) (\d{1,2}) \* \* \*")
WEEKLY = re.compile(r"(\d{1,2}) (\d{1,2}) \* \* ([0-6](?:,[0-6])*)")


class Choice(models.TextChoices):
    NONE = "", _("no schedule")
    EVERY = "every", _("at an interval")
    DAILY = "daily", _("daily")
    WEEKLY = "weekly", _("weekly, on selected days")
    CRONTAB = "crontab", _("by crontab")


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


FIELDS = tuple(
    f"schedule_{name}" for name in ("choice", "number", "unit", "days", "time", "crontab", "zone", "missed")
)
# Where a problem of a Schedule's field is shown.
SHOWN_AT = {
    "crontab": "schedule_crontab",
    "time_zone": "schedule_zone",
    "every_seconds": "schedule_number",
    "missed": "schedule_missed",
    NON_FIELD_ERRORS: "schedule_choice",
}
# Weeks begin with Monday here, crontabs with Sunday.
DAYS = [(str((day + 1) % 7), WEEKDAYS[day]) for day in range(7)]


def _zones() -> list[tuple[str, str]]:
    return [(name, name) for name in time_zones()]


class ScheduleForm(forms.ModelForm):
    """Shows every field without a script; those that the choice does not need are ignored."""

    schedule_choice = forms.ChoiceField(
        label=gettext_lazy("Schedule"),
        required=False,
        choices=Choice.choices,
        help_text=gettext_lazy("Without a schedule, runs start only when someone presses “Run now”."),
    )
    schedule_number = forms.IntegerField(
        label=gettext_lazy("Every"),
        required=False,
        min_value=1,
        help_text=gettext_lazy(
            "The interval is measured from one scheduled time to the next, however long a run takes."
        ),
    )
    schedule_unit = forms.TypedChoiceField(
        label=gettext_lazy("Unit"), required=False, coerce=int, choices=list(UNITS.items()), initial=60
    )
    schedule_days = forms.MultipleChoiceField(
        label=gettext_lazy("Days"), required=False, choices=DAYS, widget=forms.CheckboxSelectMultiple
    )
    schedule_time = forms.TimeField(
        label=gettext_lazy("Time of day"),
        required=False,
        widget=forms.TimeInput(attrs={"type": "time"}, format="%H:%M"),
        help_text=gettext_lazy("The time is in the selected time zone and follows daylight saving time."),
    )
    schedule_crontab = forms.CharField(
        label=gettext_lazy("Crontab"),
        required=False,
        max_length=200,
        strip=True,
        widget=AdminTextInputWidget,
        help_text=gettext_lazy(
            "Minute, hour, day of month, month, day of week. “30 2 * * 1-5” means 02:30 on weekdays."
        ),
    )
    schedule_zone = forms.ChoiceField(
        label=gettext_lazy("Time zone"), required=False, choices=_zones, initial="UTC"
    )
    schedule_missed = forms.ChoiceField(
        label=gettext_lazy("Missed runs"),
        required=False,
        choices=Missed.choices,
        initial=Missed.SKIP,
        help_text=gettext_lazy(
            "Applies to runs that were due while the MA was down. “Run once” replaces all missed "
            "runs with one run. “Skip” waits for the next scheduled run."
        ),
    )

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        stored = self.stored_schedule()
        for name, value in in_words(stored).items():
            self.initial.setdefault(f"schedule_{name}", value)

    def stored_schedule(self) -> Schedule | None:
        if self.instance.pk is None:
            return None
        return Schedule.objects.filter(**{self._owner_field(): self.instance}).first()

    def _post_clean(self) -> None:
        """After the owner's own fields: what a schedule may be depends on them."""
        super()._post_clean()  # type: ignore[misc]  # a mixin of model forms
        self.wish: ChosenSchedule | None = None
        if self._left_alone() or any(name in self.errors for name in FIELDS):
            return
        try:
            self.wish = chosen_schedule(
                {name.removeprefix("schedule_"): self.cleaned_data.get(name) for name in FIELDS}
            )
        except KeyError as missing:
            self.add_error(f"schedule_{missing.args[0]}", gettext("Required for the selected schedule."))
            return
        if self.wish is not None:
            self._check(self.wish)

    def _check(self, chosen: ChosenSchedule) -> None:
        schedule = chosen.put_into(Schedule(**{self._owner_field(): self.instance}))
        try:
            schedule.clean_fields(exclude=["setting", "group", "decided_up_to"])
            schedule.clean()
        except ValidationError as error:
            for name, problems in error.message_dict.items():
                for problem in problems:
                    self.add_error(SHOWN_AT.get(name, "schedule_choice"), problem)

    def save_schedule(self, by: Any) -> None:
        """Saves in the transaction that saved the owner; an unchanged schedule is not touched."""
        if self._left_alone():
            return
        now, stored = timezone.now(), self.stored_schedule()
        if self.wish is None:
            if stored is not None:
                delete_schedule(stored, by, now)
        elif stored is None or ChosenSchedule.of(stored) != self.wish:
            schedule = stored or Schedule(**{self._owner_field(): self.instance})
            save_schedule(self.wish.put_into(schedule), by, now)

    def _left_alone(self) -> bool:
        """A form that does not have the field says nothing of the schedule."""
        return "schedule_choice" not in self.fields or self.add_prefix("schedule_choice") not in self.data

    def _owner_field(self) -> str:
        return "group" if isinstance(self.instance, ScheduledGroup) else "setting"
