"""Rows to a document that `apply` would find unchanged."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agents.manifests import document as fields
from agents.manifests.document import VERSION
from agents.models import Destination, LaunchSetting, Pool, Schedule, ScheduledGroup
from agents.provisioning.topology import REMOVING


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
    return values | _scheduled(getattr(setting, "schedule", None))


def group_fields(group: ScheduledGroup) -> dict[str, Any]:
    schedule = Schedule.objects.filter(group=group).first()
    return {**plain_values(group), "members": members_of(group)} | _scheduled(schedule)


def plain_values(row: Pool | Destination | LaunchSetting | ScheduledGroup | Schedule) -> dict[str, Any]:
    return {name: getattr(row, name) for name in fields.plain_fields(type(row))}


def schedule_fields(schedule: Schedule) -> dict[str, Any]:
    """Leaves out what does not belong to its kind: an interval has no time zone."""
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
        .select_related("pool", "destination", "schedule")
        .order_by("key")
    )
    if not keys:
        return settings
    found = settings.filter(key__in=keys)
    if missing := sorted(set(keys) - {setting.key for setting in found}):
        raise UnknownSettings(f"There is no setting {', '.join(missing)}.")
    return found


# -- what a file leaves out of its pools ---------------------------------------------------------------------


def superfluous(document: fields.Document) -> Iterator[tuple[str, LaunchSetting | ScheduledGroup]]:
    """Yields each with its path, groups first. A group counts where all of its members are of pools that the
    file names; one without members is of none."""
    pools = {entry.name for entry in document.of("pools")}
    named = {section: [entry.name for entry in document.of(section)] for section in ("settings", "groups")}
    groups = ScheduledGroup.objects.exclude(name__in=named["groups"]).order_by("name")
    for group in groups.prefetch_related("members__setting__pool"):
        members = {member.setting.pool.name for member in group.members.all()}
        if members and members <= pools:
            yield f"groups/{group.name}", group
    for setting in _settings(()):
        if setting.pool.name in pools and setting.key not in named["settings"]:
            yield f"settings/{setting.key}", setting


# -- what a file changes, so that a person can read it -------------------------------------------------------


# Longer values are cut in the middle of a difference: the file itself has them.
SHOWN = 200


@dataclass(frozen=True, slots=True)
class Change:
    """`old` is None where the object is new, `new` where it is removed. `path`: settings/orders, or
    settings/orders/breaker_m."""

    path: str
    old: str | None
    new: str | None

    def __str__(self) -> str:
        if self.new is None:
            return f"- {self.path}: removed"
        return f"+ {self.path}: {self.new}" if self.old is None else f"~ {self.path}: {self.old} → {self.new}"


def between(path: str, old: Mapping[str, Any] | None, new: Mapping[str, Any]) -> list[Change]:
    """Field by field; `old` is None for an object that is not there yet."""
    if old is None:
        return [
            Change(path, None, "new"),
            *(Change(f"{path}/{name}", None, short_json(new[name])) for name in new),
        ]
    return [
        Change(f"{path}/{name}", short_json(old.get(name)), short_json(value))
        for name, value in new.items()
        if not same(old.get(name), value)
    ]


def same(old: Any, new: Any) -> bool:
    """3 and 3.0 are the same; True and 1 are not."""
    if isinstance(old, bool) or isinstance(new, bool):
        return old is new
    if isinstance(old, dict) and isinstance(new, dict):
        return old.keys() == new.keys() and all(same(old[key], new[key]) for key in old)
    if isinstance(old, list) and isinstance(new, list):
        return len(old) == len(new) and all(same(*pair) for pair in zip(old, new, strict=True))
    return bool(old == new)


def short_json(value: Any) -> str:
    if value is None:
        return "none"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= SHOWN else f"{text[: SHOWN // 2]} … {text[-SHOWN // 2 :]}"
