"""Scheduled groups as people and programs ask for them: switched as a whole, run now, members in order.

Order of locks: group, setting, schedule.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import structlog
from django.db import transaction
from django.utils.translation import gettext as _

from agents import hooks
from agents.activations.end import end_activations
from agents.activations.switch import enable_refusal, pass_over_windows, switch_off, switch_on
from agents.groups.passes import advance, start_group
from agents.isolation import isolated
from agents.models import (
    Activation,
    ActivationState,
    GroupActivation,
    GroupActivationState,
    GroupMember,
    LaunchSetting,
    ScheduledGroup,
)
from agents.reasons import MEMBER_ENDED
from agents.state_history import note
from console.audit.log import Record, no_record
from console.operations.refusals import Refused
from console.reasons import NO_REASON, Reason

log = structlog.get_logger(__name__)


def group_refusal(group: ScheduledGroup, now: datetime) -> Refused | None:
    """Returns why this group cannot be enabled now, or None."""
    members = _members(group)
    if not members:
        text = _("The group “%(name)s” has no members.") % {"name": group.name}
        return Refused("empty_group", text, _("Add settings to the group."))
    for setting in members:
        if refused := enable_refusal(setting, now):
            return Refused(refused.code, f"{setting.key}: {refused.reason}", refused.what_to_do)
    return None


def enable_group(
    group: ScheduledGroup, by: Any, now: datetime, *, record: Record = no_record
) -> ScheduledGroup:
    """All members or none. Nothing starts before the next window or “run now”. Raises Refused."""
    with transaction.atomic():
        current = ScheduledGroup.objects.select_for_update(no_key=True).get(pk=group.pk)
        if current.enabled:
            return current
        if refused := group_refusal(current, now):
            raise refused
        for setting in _members(current, lock=True):
            switch_on(setting, by, now)
        off = ScheduledGroup.objects.filter(pk=current.pk)
        off.update(enabled=True, state_since=now, disabled_reason=NO_REASON, disabled_by=None)
        pass_over_windows(current, now)
        record()
    current.refresh_from_db()
    return current


def disable_group(
    group: ScheduledGroup,
    by: Any,
    reason: Reason,
    now: datetime,
    *,
    tripped: LaunchSetting | None = None,
    record: Record = no_record,
) -> bool:
    """Returns whether it was on. Stops the member that runs; nothing after it starts. `tripped`: the member
    whose breaker is the cause."""
    with transaction.atomic():
        current = ScheduledGroup.objects.select_for_update(no_key=True).get(pk=group.pk)
        if not current.enabled:
            return False
        # First the pass, so that nobody starts its next member while the members are switched off.
        _end_pass(current, reason, now, tripped)
        for setting in _members(current, lock=True):
            was_tripped = tripped is not None and setting.pk == tripped.pk
            ended_as = ActivationState.INTERRUPTED if was_tripped else ActivationState.STOPPED
            switch_off(setting, by, reason, now, ended_as=ended_as)
        on = ScheduledGroup.objects.filter(pk=current.pk)
        on.update(
            enabled=False, state_since=now, disabled_reason=reason, disabled_by=by if by and by.pk else None
        )
        record()
    end_activations(now)
    return True


def run_group_now(group: ScheduledGroup, by: Any, now: datetime) -> GroupActivation:
    """Raises Refused."""
    with transaction.atomic():
        return start_group(ScheduledGroup.objects.select_for_update(no_key=True).get(pk=group.pk), by, now)


def delete_group(group: ScheduledGroup, by: Any, now: datetime) -> None:
    """Deletes its schedule and its passes too; its members stay, disabled. Raises Refused while it is
    enabled."""
    with transaction.atomic():
        current = ScheduledGroup.objects.select_for_update(no_key=True).get(pk=group.pk)
        if current.enabled:
            text = _("The group “%(name)s” is enabled.") % {"name": current.name}
            raise Refused("enabled", text, _("Disable it first."))
        for setting in _members(current):
            note(setting, "group", current.name, "", now=now, by=by)
        current.delete()


def advance_groups(now: datetime) -> int:
    """Moves every pass that can go on: what a kill between two members left, too."""
    running = GroupActivation.objects.filter(state=GroupActivationState.RUNNING).values_list("pk", flat=True)
    moved = 0
    for pk in list(running):
        with isolated("groups", group_activation=str(pk)):
            moved += advance(pk, now)
    return moved


def group_of(setting: LaunchSetting) -> ScheduledGroup | None:
    member = GroupMember.objects.select_related("group").filter(setting=setting).first()
    return member.group if member else None


def _follow(activation: Activation, now: datetime) -> None:
    """The end of a member starts the next one at once, in the process that saw the end."""
    if activation.group_activation_id is not None:
        advance(activation.group_activation_id, now)


hooks.activation_ended.implement(_follow)


def _end_pass(group: ScheduledGroup, reason: Reason, now: datetime, tripped: LaunchSetting | None) -> None:
    state = GroupActivationState.STOPPED
    if tripped is not None:
        state = GroupActivationState.FAILED
        reason = MEMBER_ENDED(key=tripped.key, state=ActivationState.INTERRUPTED.value)
    running = GroupActivation.objects.filter(group=group, state=GroupActivationState.RUNNING)
    running.update(state=state, reason=reason, ended_at=now)


def _members(group: ScheduledGroup, *, lock: bool = False) -> Sequence[LaunchSetting]:
    """Returns the members in their order, locked one after the other, always in that order."""
    keys = list(group.members.order_by("position").values_list("setting_id", flat=True))
    settings = LaunchSetting.objects.select_related("pool")
    if lock:
        settings = settings.select_for_update(of=("self",), no_key=True)
    return [settings.get(pk=pk) for pk in keys]
