"""Builders for tests of schedules and groups."""

from datetime import datetime
from typing import Any

from agents import hooks
from agents.models import (
    Activation,
    ActivationState,
    GroupMember,
    LaunchSetting,
    Pool,
    Run,
    RunPhase,
    Schedule,
    ScheduledGroup,
)
from agents.schedules.tick import save_schedule
from tests.web.rows import NOW, make_setting


def delayed(pool: Pool, key: str = "nightly", **fields: Any) -> LaunchSetting:
    return make_setting(pool, key, timing="DELAYED", **fields)


def enabled(setting: LaunchSetting) -> LaunchSetting:
    """As if a person had enabled it long ago."""
    setting.enabled = True
    setting.save(update_fields=["enabled"])
    return setting


def scheduled(owner: LaunchSetting | ScheduledGroup, crontab: str = "30 2 * * *", **fields: Any) -> Schedule:
    saved_at = fields.pop("saved_at", NOW)
    values: dict[str, Any] = {"crontab": crontab, "time_zone": "Europe/Berlin", **fields}
    values["group" if isinstance(owner, ScheduledGroup) else "setting"] = owner
    return save_schedule(Schedule(**values), None, saved_at)


def group_of(*settings: LaunchSetting, name: str = "night") -> ScheduledGroup:
    group = ScheduledGroup.objects.create(name=name)
    for position, setting in enumerate(settings, start=1):
        GroupMember.objects.create(group=group, setting=setting, position=position)
    return group


def end(
    activation: Activation, now: datetime, state: str = ActivationState.SUCCEEDED, *, tell: bool = True
) -> None:
    """Every record of it is here. `tell`: also those who follow; without it the process died in between."""
    Run.objects.filter(activation=activation, closed_at=None).update(
        wanted=False, state=RunPhase.FINISHED, closed_at=now
    )
    Activation.objects.filter(pk=activation.pk).update(state=state, ended_at=now)
    activation.refresh_from_db()
    if tell:
        hooks.activation_ended(activation, now)
