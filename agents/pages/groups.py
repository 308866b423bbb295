"""Scheduled groups: their members in order, the pass that runs as a line of steps, and the passes before."""

from dataclasses import dataclass
from datetime import datetime

from django.db.models import OuterRef, Subquery
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_safe

from agents.activations.queries import open_runs
from agents.groups.operations import DisableGroup, EnableGroup, RunGroup
from agents.models import (
    Activation,
    BreakerTrip,
    GroupActivation,
    GroupActivationState,
    GroupMember,
    LaunchSetting,
    ScheduledGroup,
)
from agents.pages.states import ACTIVATIONS, facts_of, setting_label
from agents.pools.rights import may_group
from agents.schedules.queries import scheduled
from agents.schedules.text import describe
from console.operations.web import operation_buttons
from console.ui.page import StateLabel, Text, link, needs, page

VIEW = "agents.view_scheduledgroup"
PASSES = 15
MOST_MEMBERS = 500

PASS_STATES: dict[str, StateLabel] = {
    GroupActivationState.RUNNING: StateLabel(GroupActivationState.RUNNING.label, "ok", "play"),
    GroupActivationState.SUCCEEDED: StateLabel(GroupActivationState.SUCCEEDED.label, "ok", "ok"),
    GroupActivationState.FAILED: StateLabel(GroupActivationState.FAILED.label, "bad", "bad"),
    GroupActivationState.STOPPED: StateLabel(GroupActivationState.STOPPED.label, "off", "off"),
}
ON = StateLabel(gettext_lazy("enabled"), "ok", "ok")
OFF = StateLabel(gettext_lazy("disabled"), "off", "off")
OFF_BY_BREAKER = StateLabel(gettext_lazy("disabled by breaker"), "bad", "off")
TO_COME = StateLabel(gettext_lazy("pending"), "info", "wait")
NOT_STARTED = StateLabel(gettext_lazy("not started"), "off", "off")


@dataclass(frozen=True, slots=True)
class MemberRow:
    """One member of a pass."""

    key: str
    state: StateLabel
    activation: Activation | None


@dataclass(frozen=True, slots=True)
class PassRow:
    run: GroupActivation
    state: StateLabel
    steps: list[MemberRow]


@dataclass(frozen=True, slots=True)
class GroupRow:
    group: ScheduledGroup
    state: StateLabel
    members: int
    words: Text
    last: GroupActivation | None
    last_state: StateLabel | None


def group_state(group: ScheduledGroup, trip: BreakerTrip | None = None) -> StateLabel:
    if group.enabled:
        return ON
    return OFF_BY_BREAKER if trip else OFF


@require_safe
@needs(VIEW)
def group_list(request: HttpRequest) -> HttpResponseBase:
    groups = ScheduledGroup.objects.select_related("schedule", "disabled_by").prefetch_related("members")
    found = list(groups.order_by("name")[:MOST_MEMBERS])
    newest = GroupActivation.objects.filter(group=OuterRef("pk")).order_by("-started_at").values("pk")[:1]
    last = dict(
        ScheduledGroup.objects.filter(pk__in=[each.pk for each in found]).values_list("pk", Subquery(newest))
    )
    passes = GroupActivation.objects.in_bulk([pk for pk in last.values() if pk])
    open_trips = {trip.group_id: trip for trip in BreakerTrip.objects.filter(ended_at=None, group__in=found)}
    return page(
        request,
        "agents/groups.html",
        title=_("Groups"),
        section="groups",
        rows=[_row(group, open_trips.get(group.pk), passes.get(last[group.pk])) for group in found],
        may_add=request.user.has_perm("agents.add_scheduledgroup"),
    )


def _row(group: ScheduledGroup, trip: BreakerTrip | None, last: GroupActivation | None) -> GroupRow:
    schedule = getattr(group, "schedule", None)
    return GroupRow(
        group=group,
        state=group_state(group, trip),
        members=len(group.members.all()),
        words=describe(schedule) if schedule else _("no schedule"),
        last=last,
        last_state=PASS_STATES[last.state] if last else None,
    )


@require_safe
@needs(VIEW)
def group_page(request: HttpRequest, name: str) -> HttpResponseBase:
    group = get_object_or_404(ScheduledGroup.objects.select_related("disabled_by"), name=name)
    now = timezone.now()
    members = list(_members(group))
    trip = BreakerTrip.objects.filter(group=group, ended_at=None).select_related("setting").first()
    passes = [
        _pass(each)
        for each in group.activations.select_related("started_by").order_by("-started_at")[:PASSES]
    ]
    return page(
        request,
        "agents/group.html",
        title=group.name,
        section="groups",
        crumbs=[(_("Groups"), link("groups"))],
        group=group,
        state=group_state(group, trip),
        trip=trip,
        members=_member_rows(members, now),
        schedule=scheduled(group, now),
        current=passes[0] if passes else None,
        passes=passes,
        buttons=operation_buttons(request.user, group, EnableGroup, RunGroup, DisableGroup),
        may_change=request.user.has_perm("agents.change_scheduledgroup"),
        may_reorder=len(members) > 1 and may_group(request.user, "edit", group, members),
    )


def _members(group: ScheduledGroup) -> list[LaunchSetting]:
    rows = GroupMember.objects.filter(group=group).select_related("setting__pool", "setting__destination")
    return [member.setting for member in rows.order_by("position")[:MOST_MEMBERS]]


def _member_rows(
    members: list[LaunchSetting], now: datetime
) -> list[tuple[LaunchSetting, StateLabel, Activation | None]]:
    keys = [each.pk for each in members]
    runs, facts, last = open_runs(keys), facts_of(keys), _last_activations(keys)
    return [
        (
            each,
            setting_label(each, runs.get(each.pk, []), now, facts[each.pk]),
            last.get(each.pk),
        )
        for each in members
    ]


def _last_activations(settings: list[int]) -> dict[int, Activation]:
    newest = Activation.objects.filter(setting=OuterRef("pk")).order_by("-started_at").values("pk")[:1]
    found = LaunchSetting.objects.filter(pk__in=settings).values_list(Subquery(newest), flat=True)
    return {each.setting_id: each for each in Activation.objects.filter(pk__in=[pk for pk in found if pk])}


def _pass(run: GroupActivation) -> PassRow:
    """Its plan is frozen, so what a member was renamed to or left since does not change the line."""
    started = {
        each.setting.key: each for each in run.activations.select_related("setting").order_by("started_at")
    }
    keys = [str(key) for key in run.plan] if isinstance(run.plan, list) else []
    waits = TO_COME if run.ended_at is None else NOT_STARTED
    steps = []
    for key in keys:
        activation = started.get(key)
        steps.append(MemberRow(key, ACTIVATIONS[activation.state] if activation else waits, activation))
    return PassRow(run, PASS_STATES[run.state], steps)
