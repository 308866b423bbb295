"""One start of a setting by a window, a group or a person, and its stop, also as people ask for it.
Enabling starts what runs as soon as possible: see `switch.switch_on`."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import structlog
from django.db import transaction
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from agents.activations.end import end_activations, set_ending
from agents.activations.launch import open_activation
from agents.activations.plan import plan_runs
from agents.activations.switch import sending_refusal
from agents.freezes.held import freeze_refusal
from agents.models import (
    Activation,
    Ending,
    GroupActivation,
    GroupMember,
    LaunchSetting,
    Timing,
    Trigger,
    Window,
)
from agents.models.activation import OPEN_ACTIVATIONS
from agents.pools.rights import why_not
from agents.reasons import DISABLED, IN_GROUP, NOT_ENDED, RUNS_ALWAYS, STARTED_BY
from agents.state_history import note, why_of
from broker.management.queues import queue_figures
from broker.port import BrokerError
from console.audit.log import Record, no_record
from console.broker import management, with_timeout
from console.operations.inputs import REASON
from console.operations.operation import Act, Done, Operation, Resource
from console.operations.refusals import Refused
from console.reasons import Reason

log = structlog.get_logger(__name__)


def start_refusal(setting: LaunchSetting, now: datetime, *, in_group: bool = False) -> Refused | None:
    """Returns why this setting cannot be started now, or None. `in_group`: its group starts it."""
    if not in_group and (group := _group_name(setting)):
        return Refused("in_group", IN_GROUP(name=group), gettext("Run the group instead."))
    if not setting.enabled:
        return Refused("disabled", DISABLED(), gettext("Enable it first."))
    if setting.timing == Timing.ASAP and setting.takes_messages:
        return Refused("runs_always", RUNS_ALWAYS(), gettext("No action is needed."))
    if Activation.objects.filter(setting=setting, ended_at=None).exists():
        what = gettext("Wait for the activation to end, or stop it.")
        return Refused("still_running", NOT_ENDED(), what)
    return freeze_refusal([setting.pool_id], now) or sending_refusal(setting)


def start_activation(
    setting: LaunchSetting,
    trigger: Trigger,
    by: Any,
    now: datetime,
    *,
    group_activation: GroupActivation | None = None,
    window: Window | None = None,
    record: Record = no_record,
) -> Activation:
    """Raises Refused. Of several at once one starts: the lock of the setting lets them look one after the
    other.

    Killed before the commit nothing has begun; after it `tend` plans the runs. The caller may have a
    transaction open: the broker is asked after it, and before any KMA is told.
    """
    with transaction.atomic():
        current = LaunchSetting.objects.select_for_update(no_key=True).get(pk=setting.pk)
        if refused := start_refusal(current, now, in_group=group_activation is not None):
            raise refused
        activation = open_activation(current, trigger, by, now, group_activation=group_activation)
        if window is not None:
            _link(window, activation)
        state, why = activation.state, STARTED_BY(trigger=trigger.value)
        note(current, "activation", "", state, now=now, by=by, reason=why, activation=activation)
        record()
        if current.takes_messages:
            transaction.on_commit(lambda: note_waiting_messages(activation.pk), robust=True)
    plan_runs(activation.pk, now)
    activation.refresh_from_db()
    return activation


def run_now(setting: LaunchSetting, by: Any, now: datetime, *, record: Record = no_record) -> Activation:
    """Returns what a person starts. Raises Refused."""
    return start_activation(setting, Trigger.PERSON, by, now, record=record)


def stop_refusal(activation: Activation) -> Refused | None:
    """Returns why a person cannot stop this activation now, or None."""
    if activation.state not in OPEN_ACTIVATIONS or activation.ending:
        return Refused(
            "over",
            gettext("The activation is already ending."),
            gettext("Wait until the servers report the end of the activation."),
        )
    setting = activation.setting
    if setting.timing == Timing.ASAP and setting.takes_messages:
        return Refused("runs_always", RUNS_ALWAYS(), gettext("To stop the setting, disable it."))
    return None


def stop_activation(
    activation: Activation, by: Any, reason: Reason, now: datetime, *, record: Record = no_record
) -> bool:
    """Returns whether it was going on. The setting stays enabled. Raises Refused where only disabling stops
    it.

    What runs now is stopped in order; killed after the commit, the KMAs stop it by their own poll."""
    if (refused := stop_refusal(activation)) is not None:
        if refused.code == "over":
            return False
        raise refused
    stopped = set_ending(activation, Ending.STOPPED, now, by=by, reason=reason, record=record)
    end_activations(now, [activation.pk])
    return stopped


def note_waiting_messages(activation_id: UUID) -> None:
    """Notes what the subscription holds at the start. A broker that is away leaves it unknown: nothing
    depends on it."""
    activation = Activation.objects.select_related("setting__destination").get(pk=activation_id)
    setting = activation.setting
    try:
        found = with_timeout(lambda: queue_figures(management(), setting.key, setting.subscribed.name))
    except BrokerError as error:
        log.info("message count at the start unknown", setting=setting.key, reason=str(error))
        return
    Activation.objects.filter(pk=activation_id, added_at_start=None).update(
        waiting_at_start=found.messages, added_at_start=found.added
    )


def _link(window: Window, activation: Activation) -> None:
    window.activation = activation
    Window.objects.filter(pk=window.pk).update(activation=activation)


def _group_name(setting: LaunchSetting) -> str:
    names = GroupMember.objects.filter(setting=setting).values_list("group__name", flat=True)
    return names.first() or ""


ACTIVATIONS = Resource(
    name="activation",
    rows=lambda: Activation.objects.select_related("setting__pool"),
    key="pk",
    route="activations/<uuid:pk>/",
    view="agents.view_activation",
    list_page="activations",
    title=_("Activations"),
    setting_key=lambda activation: activation.setting.key,
)


@dataclass(frozen=True, slots=True)
class _MayStop:
    def why_not(self, user: Any, activation: Activation) -> str:
        return why_not(user, "stop", activation.setting)


class StopActivation(Operation[Activation]):
    """Stops the activation; the setting stays enabled. 409 if it has ended, or if only disabling the setting
    stops it."""

    code, label, icon, tone = "activation.stop", _("Stop"), "pause", "danger"
    on, permission, inputs = ACTIVATIONS, _MayStop(), {"reason": REASON}

    def run(self, activation: Activation, act: Act, **inputs: Any) -> Done:
        if not stop_activation(activation, act.by, why_of(act.by, act.reason), act.now, record=act.record):
            raise Refused(
                "over",
                gettext("The activation has ended or is already ending."),
                gettext("No action is needed."),
            )
        return Done(gettext("Stopping: %(key)s") % {"key": activation.setting.key})
