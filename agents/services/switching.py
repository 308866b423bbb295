"""One setting switched on or off by itself: what both `settings` (people) and `groups` (all members) do. Each caller
has a transaction open and, for a member of a group, has locked the group before the setting."""

from datetime import datetime
from typing import Any

from django.db.models import F
from django.utils.translation import gettext as _

from agents.models import (
    Activation,
    ActivationState,
    LaunchSetting,
    OfferedAgent,
    ProvisionState,
    Run,
    ServerState,
)
from agents.models.activation import OPEN_ACTIVATIONS
from agents.services.history import note
from agents.services.looking import look_after_commit


class Refused(Exception):
    """The setting cannot be switched on now. The text says why; `what_to_do` what helps; `code` is a stable word."""

    def __init__(self, code: str, reason: str, what_to_do: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason
        self.what_to_do = what_to_do


def refusal(setting: LaunchSetting, now: datetime) -> Refused | None:
    """Why this setting cannot be enabled now, or None."""
    return _provision_refusal(setting) or _pool_refusal(setting, now)


def switch_on(setting: LaunchSetting, by: Any, now: datetime) -> None:
    """Does nothing where it is on already. Raises Refused."""
    if refused := refusal(setting, now):
        raise refused
    off_and_ready = LaunchSetting.objects.filter(
        pk=setting.pk, enabled=False, provision_state=ProvisionState.READY, wanted_hash=F("provisioned_hash")
    )
    if off_and_ready.update(enabled=True, state_since=now, disabled_reason="", disabled_by=None) != 1:
        return
    activation = Activation.objects.create(setting=setting, started_by=by, started_at=now)
    note(setting, "setting", "disabled", "enabled", now=now, by=by, activation=activation)


def switch_off(setting: LaunchSetting, by: Any, reason: str, now: datetime) -> bool:
    """Whether it was on. Stops it on every server; its subscription keeps gathering."""
    on = LaunchSetting.objects.filter(pk=setting.pk, enabled=True)
    if on.update(enabled=False, state_since=now, disabled_reason=reason, disabled_by=by) != 1:
        return False
    open_ones = Activation.objects.filter(setting=setting, state__in=OPEN_ACTIVATIONS)
    for activation in open_ones:
        # Waits for a planner that holds the row; the runs it made are then seen below.
        Activation.objects.filter(pk=activation.pk).update(state=ActivationState.STOPPED, reason=reason)
        note(setting, "setting", "enabled", "disabled", now=now, reason=reason, by=by, activation=activation)
    runs = Run.objects.filter(activation__setting=setting, wanted=True)
    look_after_commit(list(runs.values_list("server__name", flat=True)))
    runs.update(wanted=False)
    return True


def _provision_refusal(setting: LaunchSetting) -> Refused | None:
    if setting.provision_state == ProvisionState.FAILED:
        return Refused(
            "not_provisioned",
            _("The broker does not have what this setting needs: %(problem)s") % {"problem": setting.provision_problem},
            _("Remove the cause, then run manage.py provision (it is also tried again by itself)."),
        )
    if setting.provision_state != ProvisionState.READY or setting.wanted_hash != setting.provisioned_hash:
        return Refused(
            "not_provisioned",
            _("Its queues are still being made on the broker."),
            _("Wait a few seconds; ./ma doctor says what keeps them from being made."),
        )
    return None


def _pool_refusal(setting: LaunchSetting, now: datetime) -> Refused | None:
    servers = list(setting.pool.servers.all())
    facts = {"pool": setting.pool.name, "agent": setting.agent}
    if not servers:
        return Refused("empty_pool", _("The pool “%(pool)s” has no server.") % facts, _("Add a server to the pool."))
    if any(server.state(now) is not ServerState.ALIVE for server in servers):
        return None  # one that is not here now may offer the agent when it appears
    offered = OfferedAgent.objects.filter(server__in=servers)
    if offered.filter(name=setting.agent).exists():
        return None
    facts["names"] = ", ".join(sorted(set(offered.values_list("name", flat=True)))) or "—"
    return Refused(
        "unknown_agent",
        _("No server of the pool “%(pool)s” offers the agent “%(agent)s”; they offer: %(names)s.") % facts,
        _("Correct the name, or list the agent's module in KMA_AGENTS of a server and restart its KMA."),
    )
