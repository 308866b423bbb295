"""One setting switched on or off by itself: what both `settings/enable` (people) and `groups` (all members)
do. Each caller has a transaction open and, for a member of a group, has locked the group before the
setting."""

from datetime import datetime, timedelta
from typing import Any

from django.db.models import F
from django.utils.translation import gettext as _

from agents import hooks
from agents.activations.launch import open_activation
from agents.activations.queries import why_not_sent
from agents.freezes.held import freeze_refusal
from agents.liveness import poll_after_commit
from agents.models import (
    Activation,
    ActivationState,
    BreakerTrip,
    Ending,
    LaunchSetting,
    OfferedAgent,
    ProvisionState,
    Run,
    Schedule,
    ScheduledGroup,
    ServerState,
    Timing,
    Trigger,
    Window,
    Withheld,
)
from agents.models.activation import OPEN_ACTIVATIONS
from agents.reasons import AGENT_NOT_ALLOWED, NOT_SENT
from agents.state_history import note
from console.operations.refusals import Refused
from console.processes import once_per
from console.reasons import NO_REASON, Reason

# -- up to where the windows of a schedule are decided -------------------------------------------------------
# Decided ones are kept for a while, for people; nothing is decided from old ones.


KEPT = timedelta(days=90)
LOOKS_EVERY = timedelta(hours=1)
# At once of one schedule; more than the quickest schedule makes between two looks.
MOST = 5000


def pass_over_windows(owner: LaunchSetting | ScheduledGroup, now: datetime) -> None:
    """Call it in the transaction that enables a setting or a group: what was due while it was off is decided,
    and enabling never starts it; nor what a freeze held before."""
    kind = "group" if isinstance(owner, ScheduledGroup) else "setting"
    Schedule.objects.filter(**{kind: owner}).update(decided_up_to=now, held_due_at=None)


def forget_old_windows(now: datetime) -> int:
    """Returns how many were deleted. What they started stays."""
    if not once_per("forget windows", LOOKS_EVERY, now):
        return 0
    return sum(_forget(schedule, now) for schedule in Schedule.objects.values_list("pk", flat=True))


def _forget(schedule: int, now: datetime) -> int:
    old = Window.objects.filter(schedule=schedule, due_at__lt=now - KEPT).order_by("due_at")
    found = list(old.values_list("pk", flat=True)[:MOST])
    return Window.objects.filter(pk__in=found).delete()[0] if found else 0


# -- end of a trip -------------------------------------------------------------------------------------------
# A trip ends when a person enables the setting; when the trial fails, the same trip goes on.


def end_trip(setting: LaunchSetting, by: Any, now: datetime) -> bool:
    """Returns whether one was open. `now` is the instant at which the setting is enabled: by it `reopen`
    knows the trip."""
    user = by if getattr(by, "pk", None) else None
    if not BreakerTrip.objects.filter(setting=setting, ended_at=None).update(ended_at=now, ended_by=user):
        return False
    for trip in BreakerTrip.objects.filter(setting=setting, ended_at=now).select_related("setting__pool"):
        hooks.trip_ended(trip, now)
    return True


def reopen_trip(setting: LaunchSetting, activation: Activation) -> BreakerTrip | None:
    """The trip that enabling the setting ended, open again; None where enabling ended none. `setting` is the
    row as it was before it was switched off."""
    trip = (
        BreakerTrip.objects.filter(setting=setting, ended_at=setting.state_since)
        .order_by("-at", "-id")
        .first()
    )
    if trip is None:
        return None
    again = {"ended_at": None, "ended_by": None, "reopened": F("reopened") + 1, "activation": activation}
    BreakerTrip.objects.filter(pk=trip.pk).update(**again)
    return trip


# How an activation ends whose messages are handled, as far as it handles them.
DONE_WITH_MESSAGES = (Ending.DRAINED, Ending.LIMIT, Ending.WAITED)


def enable_refusal(setting: LaunchSetting, now: datetime) -> Refused | None:
    """Returns why this setting cannot be enabled now, or None."""
    return (
        freeze_refusal([setting.pool_id], now)
        or sending_refusal(setting)
        or _provision_refusal(setting)
        or _pool_refusal(setting, now)
    )


def switch_on(
    setting: LaunchSetting,
    by: Any,
    now: datetime,
    *,
    why: Reason = NO_REASON,
    try_one_first: bool | None = None,
) -> None:
    """Does nothing where it is on already. What runs as soon as possible begins with it, what is started by a
    schedule does not. `try_one_first`: for this enabling; None as the setting says. Raises Refused."""
    if refused := enable_refusal(setting, now):
        raise refused
    off_and_ready = LaunchSetting.objects.filter(
        pk=setting.pk, enabled=False, provision_state=ProvisionState.READY, wanted_hash=F("provisioned_hash")
    )
    forgotten = {
        "disabled_reason": NO_REASON,
        "disabled_by": None,
        "disabled_ticket": "",
        "disabled_until": None,
    }
    chosen = {"enablings": F("enablings") + 1, "first_tries_one": try_one_first}
    if off_and_ready.update(enabled=True, state_since=now, **chosen, **forgotten) != 1:
        return
    setting.refresh_from_db(fields=["state_since", "enablings", "first_tries_one"])
    end_trip(setting, by, now)
    asap = setting.timing == Timing.ASAP
    activation = open_activation(setting, Trigger.ENABLED, by, now) if asap else None
    note(setting, "setting", "disabled", "enabled", now=now, reason=why, by=by, activation=activation)
    hooks.setting_switched(setting, True, why, _name(by), now)
    pass_over_windows(setting, now)


def switch_off(
    setting: LaunchSetting,
    by: Any,
    reason: Reason,
    now: datetime,
    *,
    ended_as: ActivationState = ActivationState.STOPPED,
    ticket: str = "",
    until: datetime | None = None,
) -> bool:
    """Returns whether it was on. Stops it on every server; its subscription keeps gathering. An activation
    that has drained and only waits for its last records keeps its own ending."""
    on = LaunchSetting.objects.filter(pk=setting.pk, enabled=True)
    why = {"disabled_reason": reason, "disabled_by": by, "disabled_ticket": ticket, "disabled_until": until}
    if on.update(enabled=False, state_since=now, **why) != 1:
        return False
    going_on = Activation.objects.filter(setting=setting, state__in=OPEN_ACTIVATIONS)
    activation = going_on.exclude(ending__in=DONE_WITH_MESSAGES).first()
    if activation is not None:
        # Waits for a planner that holds the row; the runs it made are then seen below.
        Activation.objects.filter(pk=activation.pk).update(state=ended_as, reason=reason)
    note(setting, "setting", "enabled", "disabled", now=now, reason=reason, by=by, activation=activation)
    hooks.setting_switched(setting, False, reason, _name(by), now)
    runs = Run.objects.filter(activation__setting=setting, wanted=True)
    poll_after_commit(list(runs.values_list("server__name", flat=True)))
    runs.update(wanted=False)
    return True


def _name(by: Any) -> str:
    return str(by.get_username()) if getattr(by, "pk", None) else ""


def sending_refusal(setting: LaunchSetting) -> Refused | None:
    """Returns why no server would be sent it, so that nothing of it may begin, or None."""
    because = why_not_sent(setting)
    if because is None:
        return None
    if because is Withheld.AGENT_NOT_ALLOWED:
        why = AGENT_NOT_ALLOWED(pool=setting.pool.name, agent=setting.agent)
        return Refused(because.value, why, setting.pool.what_it_allows())
    return Refused(because.value, NOT_SENT(why=because.value), _("Open the setting to see what to correct."))


def _provision_refusal(setting: LaunchSetting) -> Refused | None:
    if setting.provision_state == ProvisionState.FAILED:
        return Refused(
            "not_provisioned",
            _("Provisioning on the broker failed: %(problem)s") % {"problem": setting.provision_problem},
            _("Fix the cause, then run ./ma manage provision. The MA also retries automatically."),
        )
    if setting.provision_state != ProvisionState.READY or setting.wanted_hash != setting.provisioned_hash:
        return Refused(
            "not_provisioned",
            _("The broker is still creating the queues of this setting."),
            _("Wait a few seconds. If the queues are still missing, run ./ma doctor to find the cause."),
        )
    return None


def _pool_refusal(setting: LaunchSetting, now: datetime) -> Refused | None:
    servers = list(setting.pool.servers.all())
    facts = {"pool": setting.pool.name, "agent": setting.agent}
    if not servers:
        return Refused(
            "empty_pool", _("The pool “%(pool)s” has no servers.") % facts, _("Add a server to the pool.")
        )
    if any(server.state(now) is not ServerState.ALIVE for server in servers):
        return None  # one that is not here now may offer the agent when it appears
    offered = OfferedAgent.objects.filter(server__in=servers)
    if offered.filter(name=setting.agent, kind=setting.kind).exists():
        return None
    if offered.filter(name=setting.agent).exists():
        return Refused(
            "other_kind",
            _("The agent “%(agent)s” and this setting are of different kinds.") % facts,
            _("Choose another agent, or create a setting of the same kind as the agent."),
        )
    facts["names"] = ", ".join(sorted(set(offered.values_list("name", flat=True)))) or "—"
    return Refused(
        "unknown_agent",
        _("No server in the pool “%(pool)s” has the agent “%(agent)s”. Available agents: %(names)s.") % facts,
        _("Correct the name, or add the agent's module to KMA_AGENTS on a server and restart its KMA."),
    )
