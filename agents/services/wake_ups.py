"""Keeps a row of django-celery-beat in step with each schedule: beat wakes `agents.tick` with it.

A wake-up decides nothing and may come too often, late or never: which windows are due is computed from the schedule,
and `agents.tend` looks at every schedule anyway. So a crontab that Celery cannot say wakes more often than it is due.
"""

import json
from collections.abc import Collection
from datetime import datetime
from zoneinfo import ZoneInfo

from django_celery_beat.models import CrontabSchedule, IntervalSchedule, PeriodicTask

from agents import crontabs
from agents.models import LaunchSetting, Schedule, ScheduledGroup

TASK = "agents.tick"
# A worker that was away must not find a pile of these.
EXPIRES_SECONDS = 60


def keep_wake_up(schedule: Schedule, enabled: bool) -> None:
    """To be called in the transaction that saved the schedule or switched its owner."""
    name = _name(schedule.pk)
    task = PeriodicTask.objects.filter(name=name).first() or PeriodicTask(name=name, task=TASK)
    task.args = json.dumps([schedule.pk])
    task.enabled = enabled
    task.expire_seconds = EXPIRES_SECONDS
    task.crontab = _crontab(schedule) if schedule.crontab else None
    task.interval = None if schedule.crontab else _interval(schedule)
    task.save()
    if schedule.periodic_task_id != task.pk:
        Schedule.objects.filter(pk=schedule.pk).update(periodic_task=task)
        schedule.periodic_task = task


def drop_wake_up(schedule_id: int) -> None:
    """Also for a schedule that went with its owner: its next wake-up finds it gone."""
    for task in PeriodicTask.objects.filter(name=_name(schedule_id), task=TASK):
        task.delete()


def _name(schedule_id: int) -> str:
    return f"schedule {schedule_id}"


def _interval(schedule: Schedule) -> IntervalSchedule:
    found = {"every": schedule.every_seconds, "period": IntervalSchedule.SECONDS}
    return IntervalSchedule.objects.filter(**found).first() or IntervalSchedule.objects.create(**found)


def _crontab(schedule: Schedule) -> CrontabSchedule:
    fields = crontabs.fields_of(schedule.crontab)
    # Celery wants day *and* weekday, and knows no last day and no second Friday.
    any_day = fields.either or bool(fields.nth_weekdays) or min(fields.days) < 1
    values = {
        "minute": _listed(fields.minutes, crontabs.ALL_MINUTES),
        "hour": _listed(fields.hours, crontabs.ALL_HOURS),
        "day_of_month": "*" if any_day else _listed(fields.days, crontabs.ALL_DAYS),
        "month_of_year": _listed(fields.months, crontabs.ALL_MONTHS),
        "day_of_week": "*" if any_day else _listed(fields.weekdays, crontabs.ALL_WEEKDAYS),
        "timezone": ZoneInfo(schedule.time_zone),
    }
    return CrontabSchedule.objects.filter(**values).first() or CrontabSchedule.objects.create(**values)


def _listed(numbers: Collection[int], all_of_them: Collection[int]) -> str:
    return "*" if set(numbers) == set(all_of_them) else ",".join(str(number) for number in sorted(numbers))


def follow_owner(owner: LaunchSetting | ScheduledGroup, enabled: bool, now: datetime) -> None:
    """To be called where a setting or a group is switched, in the same transaction. What was due while it was off is
    decided: enabling never starts it."""
    schedule = Schedule.objects.select_related("periodic_task").filter(**{_kind(owner): owner}).first()
    if schedule is None:
        return
    if enabled:
        Schedule.objects.filter(pk=schedule.pk).update(decided_up_to=now)
    keep_wake_up(schedule, enabled)


def _kind(owner: LaunchSetting | ScheduledGroup) -> str:
    return "group" if isinstance(owner, ScheduledGroup) else "setting"
