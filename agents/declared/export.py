"""Rows to a document that `apply` would find unchanged."""

from collections.abc import Collection, Sequence
from typing import Any

from agents.declared import fields
from agents.declared.shape import VERSION
from agents.models import Destination, LaunchSetting, Pool, Schedule, ScheduledGroup
from agents.services.wishes import REMOVING


class UnknownSettings(Exception):
    """The text names them."""


def document(keys: Sequence[str] = ()) -> dict[str, Any]:
    """Everything, or these settings with what they need and the groups that hold nothing else. Whether
    something is enabled is no part of it, nor are servers and their tokens. Raises UnknownSettings."""
    settings = list(_settings(keys))
    pools: Collection[Pool] = Pool.objects.order_by("name")
    destinations: Collection[Destination] = Destination.objects.order_by("name")
    groups: Collection[ScheduledGroup] = ScheduledGroup.objects.order_by("name")
    if keys:
        pools = sorted({setting.pool for setting in settings}, key=lambda pool: pool.name)
        needed = {setting.destination for setting in settings if setting.destination is not None}
        destinations = sorted(needed, key=lambda destination: destination.name)
        groups = [group for group in groups if set(members_of(group)) <= set(keys) and members_of(group)]
    return {
        "version": VERSION,
        "pools": {pool.name: pool_fields(pool) for pool in pools},
        "destinations": {each.name: plain_values(each) for each in destinations},
        "settings": {setting.key: setting_fields(setting) for setting in settings},
        "groups": {group.name: group_fields(group) for group in groups},
    }


def pool_fields(pool: Pool) -> dict[str, Any]:
    return {**plain_values(pool), "servers": servers_of(pool)}


def setting_fields(setting: LaunchSetting) -> dict[str, Any]:
    destination = setting.destination.name if setting.destination else None
    values = plain_values(setting)
    values = {"agent": values.pop("agent"), "pool": setting.pool.name, "destination": destination, **values}
    return values | _scheduled(Schedule.objects.filter(setting=setting).first())


def group_fields(group: ScheduledGroup) -> dict[str, Any]:
    schedule = Schedule.objects.filter(group=group).first()
    return {**plain_values(group), "members": members_of(group)} | _scheduled(schedule)


def plain_values(row: Pool | Destination | LaunchSetting | ScheduledGroup | Schedule) -> dict[str, Any]:
    return {name: getattr(row, name) for name in fields.plain_fields(type(row))}


def schedule_fields(schedule: Schedule) -> dict[str, Any]:
    """Without what does not belong to its kind: an interval has no time zone."""
    values = plain_values(schedule)
    useless = ("every_seconds",) if schedule.crontab else ("crontab", "time_zone")
    return {name: value for name, value in values.items() if name not in useless}


def members_of(group: ScheduledGroup) -> list[str]:
    return list(group.members.order_by("position").values_list("setting__key", flat=True))


def servers_of(pool: Pool) -> list[str]:
    return list(pool.servers.order_by("name").values_list("name", flat=True))


def _scheduled(schedule: Schedule | None) -> dict[str, Any]:
    return {} if schedule is None else {"schedule": schedule_fields(schedule)}


def _settings(keys: Sequence[str]) -> Collection[LaunchSetting]:
    settings = (
        LaunchSetting.objects.exclude(wanted_hash=REMOVING)
        .select_related("pool", "destination")
        .order_by("key")
    )
    if not keys:
        return settings
    found = settings.filter(key__in=keys)
    if missing := sorted(set(keys) - {setting.key for setting in found}):
        raise UnknownSettings(f"There is no setting {', '.join(missing)}.")
    return found
