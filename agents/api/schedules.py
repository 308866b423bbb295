"""A schedule inside its setting or group, and the windows that were decided."""

from collections.abc import Mapping
from typing import Any

from django.core.exceptions import NON_FIELD_ERRORS
from django.core.exceptions import ValidationError as ModelError
from django.db.models import QuerySet
from django.utils import timezone
from rest_framework import serializers
from rest_framework.response import Response
from rest_framework.views import APIView

from agents.models import LaunchSetting, Schedule, ScheduledGroup, Window
from agents.schedules.tick import delete_schedule, save_schedule, upcoming
from console.rest.lists import KeysetPages, refuse_unknown
from console.rest.serializers import ReasonCode, ReasonParams, ReasonText

CHOSEN = ("crontab", "time_zone", "every_seconds", "missed")


class ScheduleSerializer(serializers.ModelSerializer[Schedule]):
    """Either `crontab` with `time_zone`, or `every_seconds`. `next_due`: the next scheduled times, also of a
    disabled owner; null in lists."""

    next_due = serializers.SerializerMethodField()

    class Meta:
        model = Schedule
        fields = (*CHOSEN, "next_due")

    def get_next_due(self, schedule: Schedule) -> list[str] | None:
        if isinstance(self.root, serializers.ListSerializer):
            return None
        return [each.isoformat() for each in upcoming(schedule, timezone.now())]

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, dict) and (unknown := sorted(set(data) - set(CHOSEN))):
            raise serializers.ValidationError({unknown[0]: f"Unknown field; known fields: {sorted(CHOSEN)}."})
        return super().to_internal_value(data)


class WindowSerializer(serializers.ModelSerializer[Window]):
    reason = ReasonText()
    reason_code = ReasonCode("reason")
    reason_params = ReasonParams("reason")

    class Meta:
        model = Window
        fields = (
            "due_at", "result", "reason", "reason_code", "reason_params", "activation", "group_activation",
            "decided_at",
        )  # fmt: skip
        read_only_fields = fields


class NewestWindows(KeysetPages):
    ordering = ("-due_at",)


def windows_answer(view: APIView, rows: QuerySet[Window]) -> Response:
    """A page of them by key."""
    refuse_unknown(view.request.query_params, ())
    pages = NewestWindows()
    found = pages.paginate_queryset(rows.order_by("-due_at"), view.request, view=view)
    return pages.get_paginated_response(WindowSerializer(found, many=True).data)


def store_schedule(
    owner: LaunchSetting | ScheduledGroup, values: Mapping[str, Any] | None, by: Any, *, partly: bool
) -> None:
    """`values` None deletes it. `partly`: what is not named stays, but crontab and interval, which exclude
    each other. Raises ValidationError at `schedule`; to be called inside the transaction that saves the
    owner."""
    schedule = Schedule.objects.filter(**_of(owner)).first()
    if values is None:
        if schedule is not None:
            delete_schedule(schedule, by, timezone.now())
        return
    if schedule is None or not partly:
        schedule = Schedule(pk=schedule.pk if schedule else None, **_of(owner))
    chosen = dict(values)
    if chosen.get("crontab"):
        chosen.setdefault("every_seconds", None)
    elif chosen.get("every_seconds"):
        chosen.setdefault("crontab", "")
    for name, value in chosen.items():
        setattr(schedule, name, value)
    try:
        save_schedule(schedule, by, timezone.now())
    except ModelError as error:
        problems = error.message_dict
        if NON_FIELD_ERRORS in problems:
            problems["non_field_errors"] = problems.pop(NON_FIELD_ERRORS)
        raise serializers.ValidationError({"schedule": problems}) from error


def _of(owner: LaunchSetting | ScheduledGroup) -> dict[str, Any]:
    return {"group" if isinstance(owner, ScheduledGroup) else "setting": owner}
