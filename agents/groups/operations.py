"""Describes what people do with a scheduled group: all its members are enabled, disabled, run and stopped
with it."""

from datetime import datetime
from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from agents.activations.operations import stop_activation
from agents.groups.group import delete_group, disable_group, enable_group, group_refusal, run_group_now
from agents.groups.members import reorder
from agents.models import Activation, GroupActivation, GroupActivationState, ScheduledGroup
from agents.models.activation import OPEN_ACTIVATIONS
from agents.pools.rights import GroupRight
from agents.state_history import why_of
from console.operations.inputs import REASON, ChoiceInput, TextInput
from console.operations.operation import UNCHANGED, Act, Done, Operation, Question, Resource
from console.operations.refusals import Refused

GROUPS = Resource(
    name="group",
    rows=lambda: ScheduledGroup.objects.select_related("disabled_by"),
    key="name",
    route="groups/<slug:name>/",
    view="agents.view_scheduledgroup",
    list_page="groups",
    title=_("Groups"),
)


class EnableGroup(Operation[ScheduledGroup]):
    """Enables all members or none. 409 with the reason if refused."""

    code, label, icon = "group.enable", _("Enable"), "play"
    on, permission = GROUPS, GroupRight("enable")

    def offered(self, group: ScheduledGroup) -> bool:
        return not group.enabled

    def refusal(self, group: ScheduledGroup, now: datetime) -> Refused | None:
        return None if group.enabled else group_refusal(group, now)

    def question(self, group: ScheduledGroup, by: Any, **named: Any) -> Question:
        text = _(
            "All members are enabled together with the group. Nothing starts until the next "
            "scheduled time or until someone presses “Run now”."
        )
        return Question(gettext("Enable the group %(name)s?") % {"name": group.name}, [text])

    def run(self, group: ScheduledGroup, act: Act, **inputs: Any) -> Done:
        enable_group(group, act.by, act.now, record=act.record)
        done = gettext("Enabled: %(key)s") % {"key": group.name}
        return Done(done if act.is_recorded else UNCHANGED)


class DisableGroup(Operation[ScheduledGroup]):
    """Stops the running member; the following members do not start."""

    code, label, icon, tone = "group.disable", _("Disable"), "off", "danger"
    on, permission, inputs = GROUPS, GroupRight("disable"), {"reason": REASON}

    def offered(self, group: ScheduledGroup) -> bool:
        return group.enabled

    def question(self, group: ScheduledGroup, by: Any, **named: Any) -> Question:
        stops = _(
            "The running member will stop, later members will not start, and all members will be disabled."
        )
        waits = _(
            "Messages wait in the members' subscriptions until the group is enabled again. Nothing is lost."
        )
        return Question(gettext("Disable the group %(name)s?") % {"name": group.name}, [stops, waits])

    def run(self, group: ScheduledGroup, act: Act, **inputs: Any) -> Done:
        disable_group(group, act.by, why_of(act.by, act.reason), act.now, record=act.record)
        done = gettext("Disabled: %(key)s") % {"key": group.name}
        return Done(done if act.is_recorded else UNCHANGED)


class RunGroup(Operation[ScheduledGroup]):
    """Starts a group run now. 409 if refused."""

    code, label = "group.run", _("Run now")
    on, permission = GROUPS, GroupRight("run")

    def offered(self, group: ScheduledGroup) -> bool:
        return group.enabled and not group.activations.filter(state=GroupActivationState.RUNNING).exists()

    def question(self, group: ScheduledGroup, by: Any, **named: Any) -> Question:
        text = _(
            "The members start one after another. Each member starts only after the previous one succeeds."
        )
        return Question(gettext("Run the group %(name)s now?") % {"name": group.name}, [text])

    @transaction.atomic
    def run(self, group: ScheduledGroup, act: Act, **inputs: Any) -> Done:
        started = run_group_now(group, act.by, act.now)
        act.record()
        return Done(gettext("Started: %(key)s") % {"key": group.name}, started)


class StopGroup(Operation[ScheduledGroup]):
    """Stops the running member and the group run; the group stays enabled. 409 if no run is in progress."""

    code, label, icon, tone = "group.stop", _("Stop"), "pause", "danger"
    on, permission, inputs = GROUPS, GroupRight("stop"), {"reason": REASON}

    def run(self, group: ScheduledGroup, act: Act, **inputs: Any) -> Done:
        going_on = Activation.objects.select_related("setting").filter(state__in=OPEN_ACTIVATIONS)
        passes = GroupActivation.objects.filter(group=group, state=GroupActivationState.RUNNING)
        activation = going_on.filter(group_activation__in=passes).first()
        if activation is None:
            raise Refused(
                "nothing_runs", gettext("No member of the group is running."), gettext("No action is needed.")
            )
        stop_activation(activation, act.by, why_of(act.by, act.reason), act.now, record=act.record)
        done = gettext("Stopping: %(key)s") % {"key": group.name}
        return Done(done if act.is_recorded else UNCHANGED)


class MoveMember(Operation[ScheduledGroup]):
    """Moves a member one position up or down. A group run in progress keeps its order."""

    code, label, immediate = "group.move", _("Reorder members"), True
    on, permission = GROUPS, GroupRight("edit")
    inputs = {
        "member": TextInput(_("Member"), 61, required=True),
        "to": ChoiceInput(_("Direction"), [("up", "up"), ("down", "down")]),
    }

    @transaction.atomic
    def run(self, group: ScheduledGroup, act: Act, *, member: str, to: str, **inputs: Any) -> Done:
        ScheduledGroup.objects.select_for_update(no_key=True).get(pk=group.pk)
        keys = list(group.members.order_by("position").values_list("setting__key", flat=True))
        place = keys.index(member) if member in keys else -1
        other = place - 1 if to == "up" else place + 1
        if place >= 0 and 0 <= other < len(keys):
            keys[place], keys[other] = keys[other], keys[place]
            try:
                reorder(group, keys, act.by, act.now)
            except ValidationError as error:  # changed by somebody else in between
                raise Refused(
                    "changed", " ".join(error.messages), gettext("Reload the page and try again.")
                ) from error
            act.record()
        return Done("")


class DeleteGroup(Operation[ScheduledGroup]):
    """Deletes the group; its members stay, disabled. 409 while the group is enabled or a run is in
    progress."""

    code, label, icon, tone = "group.delete", _("Delete the group"), "trash", "danger"
    on, permission = GROUPS, GroupRight("edit")

    def refusal(self, group: ScheduledGroup, now: datetime) -> Refused | None:
        if not group.enabled:
            return None
        text = gettext("The group “%(name)s” is enabled.") % {"name": group.name}
        return Refused("enabled", text, gettext("Disable it first."))

    def question(self, group: ScheduledGroup, by: Any, **named: Any) -> Question:
        goes = _("The schedule and the runs of the group are deleted with it.")
        stays = _("The members remain disabled and keep their data.")
        return Question(gettext("Delete the group %(name)s?") % {"name": group.name}, [goes, stays])

    @transaction.atomic
    def run(self, group: ScheduledGroup, act: Act, **inputs: Any) -> Done:
        delete_group(group, act.by, act.now)
        act.record()
        return Done(gettext("Deleted: %(key)s") % {"key": group.name}, is_gone=True)
