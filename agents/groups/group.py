"""Scheduled groups as people and programs ask for them: switched as a whole, run now, members in order;
and their passes: begun, moved on, ended.

Order of locks: group, setting, schedule.

Each move of a pass is one transaction: the conditional UPDATE of the group activation (its step, or its
state) and what follows from it, the start of the next member, are committed together. A kill before the
commit leaves the step as it was, and `advance_groups` makes it; after the commit nothing is left to do.
Several that move the same pass at once (the follower of two endings, two tends) meet at that UPDATE: one
wins, the others change nothing.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import structlog
from django.db import transaction
from django.utils.translation import gettext as _

from agents import hooks
from agents.activations.end import end_activations
from agents.activations.operations import start_activation
from agents.activations.switch import enable_refusal, pass_over_windows, switch_off, switch_on
from agents.freezes.held import FrozenStart, Held, freeze_refusal, note_held
from agents.freezes.queries import pools_of
from agents.groups.rules import GroupDecision, GroupStep, MemberFacts, next_step
from agents.isolation import isolated
from agents.models import (
    Activation,
    ActivationState,
    GroupActivation,
    GroupActivationState,
    GroupMember,
    HeldKind,
    LaunchSetting,
    ScheduledGroup,
    Trigger,
)
from agents.reasons import GROUP_DISABLED, GROUP_RUNS, MEMBER_ENDED, MEMBER_GONE, MEMBER_REFUSED, MEMBER_RUNS
from agents.state_history import note
from console.audit.log import Record, no_record
from console.operations.refusals import Refused
from console.reasons import NO_REASON, Reason


def start_group(group: ScheduledGroup, by: Any, now: datetime) -> GroupActivation:
    """Begins a pass with its first member. The caller holds the lock of the group. Raises Refused, and then
    nothing was begun."""
    if refused := group_start_refusal(group, now):
        raise refused
    plan = list(group.members.order_by("position").values_list("setting__key", flat=True))
    with transaction.atomic():
        activation = GroupActivation.objects.create(group=group, plan=plan, started_by=by, started_at=now)
        _start_member(activation, 0, by, now)
    return activation


def group_start_refusal(group: ScheduledGroup, now: datetime) -> Refused | None:
    """Returns why no pass of it can begin now, or None."""
    if not group.enabled:
        return Refused("disabled", GROUP_DISABLED(name=group.name), _("Enable it first."))
    running = GroupActivation.objects.filter(group=group, state=GroupActivationState.RUNNING).first()
    if running is not None:
        why = GROUP_RUNS(step=running.step + 1, count=len(running.plan))
        return Refused(
            "still_running", why, _("Wait for the group run to end, or disable the group to stop it.")
        )
    members = Activation.objects.filter(setting__membership__group=group, ended_at=None)
    if busy := members.values_list("setting__key", flat=True).first():
        what = _("Wait until the servers report the end of the activation.")
        return Refused("still_running", MEMBER_RUNS(key=busy), what)
    return freeze_refusal(pools_of(group), now)


def advance(group_activation_id: UUID, now: datetime) -> bool:
    """Returns whether this pass moved on."""
    current = GroupActivation.objects.filter(
        pk=group_activation_id, state=GroupActivationState.RUNNING
    ).first()
    if current is None:
        return False
    decision = next_step(current.plan, current.step, _member_facts(current, current.step))
    if decision.step is GroupStep.WAIT:
        return False
    try:
        return _carry_out(current, decision, now)
    except FrozenStart as held:
        _hold(current, decision, held, now)
        return False


def _hold(current: GroupActivation, decision: GroupDecision, held: FrozenStart, now: datetime) -> None:
    """The pass waits before this member: whoever looks when nothing is frozen any more starts it."""
    waits = GroupActivation.objects.filter(
        pk=current.pk, state=GroupActivationState.RUNNING, step=current.step
    )
    with transaction.atomic():
        if current.reason != held.why and waits.update(reason=held.why):
            key = current.plan[decision.index]
            note_held(held.frozen, Held(HeldKind.MEMBER, f"setting:{key}"), now)


@transaction.atomic
def _carry_out(current: GroupActivation, decision: GroupDecision, now: datetime) -> bool:
    unchanged = GroupActivation.objects.filter(
        pk=current.pk, state=GroupActivationState.RUNNING, step=current.step
    )
    if unchanged.update(step=decision.index, reason=NO_REASON) != 1:
        return False
    if decision.step is GroupStep.SUCCEED:
        return _end(current, GroupActivationState.SUCCEEDED, NO_REASON, now)
    if decision.step is GroupStep.FAIL:
        facts = _member_facts(current, decision.index)
        state = ActivationState(facts.state).value if facts else ""
        why = MEMBER_ENDED(key=current.plan[decision.index], state=state)
        return _end(current, GroupActivationState.FAILED, why, now)
    # The row is locked by now: where two saw the same member missing, the second finds it started.
    if _member_facts(current, decision.index) is not None:
        return False
    try:
        _start_member(current, decision.index, current.started_by, now)
    except FrozenStart:
        raise  # nothing of this move is kept
    except Refused as refused:
        why = MEMBER_REFUSED(key=current.plan[decision.index], why=refused.why)
        _end(current, GroupActivationState.FAILED, why, now)
    return True


def _start_member(activation: GroupActivation, index: int, by: Any, now: datetime) -> None:
    key = activation.plan[index]
    setting = LaunchSetting.objects.filter(key=key).first()
    if setting is None:
        raise Refused("gone", MEMBER_GONE(key=key), "")
    with transaction.atomic():
        start_activation(setting, Trigger.GROUP, by, now, group_activation=activation)


def _member_facts(activation: GroupActivation, index: int) -> MemberFacts | None:
    if index >= len(activation.plan):
        return None
    begun = Activation.objects.filter(group_activation=activation, setting__key=activation.plan[index])
    found = begun.order_by("-started_at").values_list("state", "ended_at").first()
    return MemberFacts(found[0], found[1] is not None) if found else None


def _end(activation: GroupActivation, state: GroupActivationState, reason: Reason, now: datetime) -> bool:
    running = GroupActivation.objects.filter(pk=activation.pk, state=GroupActivationState.RUNNING)
    return running.update(state=state, reason=reason, ended_at=now) == 1


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
