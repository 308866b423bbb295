"""Passes of scheduled groups: begun, moved on, ended.

Each move is one transaction: the conditional UPDATE of the group activation (its step, or its state) and what
follows from it, the start of the next member, are committed together. A kill before the commit leaves the
step as it was, and `advance_groups` makes it; after the commit nothing is left to do. Several that move the
same pass at once (the follower of two endings, two tends) meet at that UPDATE: one wins, the others change
nothing.
"""

from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils.translation import gettext as _

from agents.activations.operations import start_activation
from agents.groups.rules import GroupDecision, GroupStep, MemberFacts, next_step
from agents.models import (
    Activation,
    ActivationState,
    GroupActivation,
    GroupActivationState,
    LaunchSetting,
    ScheduledGroup,
    Trigger,
)
from agents.reasons import GROUP_DISABLED, GROUP_RUNS, MEMBER_ENDED, MEMBER_GONE, MEMBER_REFUSED, MEMBER_RUNS
from console.operations.refusals import Refused
from console.reasons import NO_REASON, Reason


def start_group(group: ScheduledGroup, by: Any, now: datetime) -> GroupActivation:
    """Begins a pass with its first member. The caller holds the lock of the group. Raises Refused, and then
    nothing was begun."""
    if refused := group_start_refusal(group):
        raise refused
    plan = list(group.members.order_by("position").values_list("setting__key", flat=True))
    with transaction.atomic():
        activation = GroupActivation.objects.create(group=group, plan=plan, started_by=by, started_at=now)
        _start_member(activation, 0, by, now)
    return activation


def group_start_refusal(group: ScheduledGroup) -> Refused | None:
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
        what = _("Wait until the servers have reported the end.")
        return Refused("still_running", MEMBER_RUNS(key=busy), what)
    return None


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
    return _carry_out(current, decision, now)


@transaction.atomic
def _carry_out(current: GroupActivation, decision: GroupDecision, now: datetime) -> bool:
    unchanged = GroupActivation.objects.filter(
        pk=current.pk, state=GroupActivationState.RUNNING, step=current.step
    )
    if unchanged.update(step=decision.index) != 1:
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
