"""Describes which settings are in a group, and in which order."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils.translation import gettext as _

from agents.models import GroupMember, LaunchSetting, Schedule, ScheduledGroup, Timing
from agents.state_history import note


@transaction.atomic
def save_members(group: ScheduledGroup, keys: Sequence[str], by: Any, now: datetime) -> None:
    """The members are exactly these settings, in this order. All or nothing; raises ValidationError at
    `members`.

    A pass that runs keeps the plan it began with; members come and go only while the group is disabled,
    because they are enabled through it.
    """
    current = ScheduledGroup.objects.select_for_update(no_key=True).get(pk=group.pk)
    before = list(current.members.order_by("position").values_list("setting__key", flat=True))
    settings = _checked(current, before, keys)
    if list(keys) == before:
        return
    # Positions are unique at every moment: first out of the way, then where they belong.
    offset = max([len(keys), *current.members.values_list("position", flat=True)])
    current.members.exclude(setting__key__in=keys).delete()
    known = {member.setting_id: member for member in current.members.all()}
    for place, member in enumerate(known.values(), start=1):
        GroupMember.objects.filter(pk=member.pk).update(position=offset + place)
    for position, setting in enumerate(settings, start=1):
        if setting.pk in known:
            GroupMember.objects.filter(pk=known[setting.pk].pk).update(position=position)
        else:
            GroupMember.objects.create(group=current, setting=setting, position=position)
    _note_moves(current, before, list(keys), by, now)


@transaction.atomic
def reorder(group: ScheduledGroup, keys: Sequence[str], by: Any, now: datetime) -> None:
    """The same members in another order, also while the group is enabled. Raises ValidationError."""
    current = ScheduledGroup.objects.select_for_update(no_key=True).get(pk=group.pk)
    present = set(current.members.values_list("setting__key", flat=True))
    if set(keys) != present:
        text = _("List each member exactly once: %(keys)s.")
        raise _problem("not_the_members", text, keys=", ".join(sorted(present)))
    save_members(group, keys, by, now)


def check_members(group: ScheduledGroup, keys: Sequence[str]) -> None:
    """Raises ValidationError at `members` where `save_members` would; for forms, before anything is saved."""
    before = [] if group.pk is None else list(group.members.values_list("setting__key", flat=True))
    _checked(group, before, keys)


def _checked(group: ScheduledGroup, before: Sequence[str], keys: Sequence[str]) -> list[LaunchSetting]:
    # Locked: nobody enables one of them alone meanwhile.
    asked = LaunchSetting.objects.select_for_update(no_key=True).filter(key__in=keys).order_by("key")
    found = {setting.key: setting for setting in asked}
    for place, key in enumerate(keys):
        if key in keys[:place]:
            raise _problem("twice", _("The setting “%(key)s” is listed twice."), key=key)
        if key not in found:
            raise _problem("unknown", _unknown(key), key=key)
    if group.enabled and set(keys) != set(before):
        text = _("The group and its members are enabled. Disable the group, then add or remove members.")
        raise _problem("group_enabled", text)
    settings = [found[key] for key in keys]
    for setting in settings:
        if setting.key not in before:
            _check_new(group, setting)
    return settings


def _unknown(key: str) -> str:
    if ScheduledGroup.objects.filter(name=key).exists():
        return _("“%(key)s” is a group. A group can contain only settings.")
    return _("The setting “%(key)s” does not exist.")


def _check_new(group: ScheduledGroup, setting: LaunchSetting) -> None:
    if setting.timing != Timing.DELAYED:
        text = _("“%(key)s” is continuous. A group can contain only scheduled settings.")
        raise _problem("not_delayed", text, key=setting.key)
    other = GroupMember.objects.select_related("group").filter(setting=setting).first()
    if other is not None:
        text = _("“%(key)s” is already in the group “%(group)s”. A setting can be in only one group.")
        raise _problem("in_another_group", text, key=setting.key, group=other.group.name)
    if Schedule.objects.filter(setting=setting).exists():
        text = _(
            "“%(key)s” has its own schedule. Delete the schedule first: members run on the "
            "schedule of the group."
        )
        raise _problem("own_schedule", text, key=setting.key)
    if setting.enabled:
        text = _("“%(key)s” is enabled. Disable it first: members are enabled together with the group.")
        raise _problem("enabled", text, key=setting.key)


def _problem(code: str, text: str, **facts: str) -> ValidationError:
    return ValidationError({"members": ValidationError(text, code=code, params=facts)})


def _note_moves(
    group: ScheduledGroup, before: Sequence[str], after: Sequence[str], by: Any, now: datetime
) -> None:
    places = (
        {key: f"{group.name} {place}" for place, key in enumerate(keys, start=1)} for keys in (before, after)
    )
    old, new = places
    for setting in LaunchSetting.objects.filter(key__in={*before, *after}):
        if old.get(setting.key) != new.get(setting.key):
            note(
                setting, "group", old.get(setting.key, "")[:60], new.get(setting.key, "")[:60], now=now, by=by
            )
