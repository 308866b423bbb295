"""A person lets one server go on that gave a setting up alone: a new run with a higher epoch, its counts at
0."""

from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from agents.activations.enable import sending_refusal
from agents.liveness import poll_after_commit
from agents.models import Activation, Duty, LaunchSetting, Run, RunPhase, Server
from agents.models.activation import OPEN_ACTIVATIONS
from agents.reasons import RESUMED
from agents.state_history import note
from console.operations.refusals import Refused


def resume_on_server(setting: LaunchSetting, server: Server, by: Any, now: datetime) -> Run:
    """The new run. Raises Refused.

    The lock of the setting keeps a trip out, which begins with the same lock, and the one of the activation a
    planner: of two that resume at once the second finds nothing interrupted. The KMA's old run may still be
    finishing its last handlers: that is another epoch. Killed before the commit nothing is resumed; after it,
    the KMA polls.
    """
    with transaction.atomic():
        current = LaunchSetting.objects.select_for_update(no_key=True).get(pk=setting.pk)
        open_ones = Activation.objects.select_for_update(no_key=True).filter(
            setting=current, state__in=OPEN_ACTIVATIONS, ending=""
        )
        activation = open_ones.first()
        if not current.enabled or activation is None:
            raise Refused(
                "not_running", _("The setting does not run."), _("Enable it: then it begins everywhere.")
            )
        if refused := _refusal(current, activation, server):
            raise refused
        epoch = activation.last_epoch + 1
        Activation.objects.filter(pk=activation.pk).update(last_epoch=epoch)
        run = Run.objects.create(activation=activation, server=server, epoch=epoch, created_at=now)
        note(
            current, "run", "interrupted", "wanted", now=now, by=by, reason=RESUMED(n=epoch),
            activation=activation, server=server,
        )  # fmt: skip
        poll_after_commit([server.name])
    return run


def _refusal(setting: LaunchSetting, activation: Activation, server: Server) -> Refused | None:
    newest = Run.objects.filter(activation=activation, server=server).order_by("-epoch").first()
    facts = {"server": server.name, "pool": setting.pool.name}
    if newest is None or newest.state != RunPhase.INTERRUPTED:
        return Refused(
            "not_interrupted",
            _("It was not given up on %(server)s, or somebody resumed it there already.") % facts,
            _("Look at the runs of its activation."),
        )
    if not setting.pool.servers.filter(pk=server.pk).exists():
        return Refused(
            "not_in_pool",
            _("%(server)s is not in the pool “%(pool)s” any more.") % facts,
            _("Add it to the pool first."),
        )
    if server.duty != Duty.ACTIVE:
        return Refused(
            "not_in_service",
            _("%(server)s is cordoned or draining: nothing new begins there.") % facts,
            _("Put the server back into service first."),
        )
    return sending_refusal(setting)
