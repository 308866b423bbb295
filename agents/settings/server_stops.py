"""Stops a setting on one server of several, and starts it there again; the others go on.

A row of `ServerStop` is the truth, and planning reads it. Killed before the commit nothing has changed; after
it, and before the planning, `agents.tend` plans.
"""

from datetime import datetime

from django.db import transaction
from django.db.models import F
from django.utils.translation import gettext

from agents.activations.plan import plan_runs
from agents.models import Activation, LaunchSetting, OfferedAgent, Server, ServerStop
from agents.models.activation import OPEN_ACTIVATIONS
from agents.state_history import note, why_of
from console.operations.operation import Act
from console.operations.refusals import Refused


def other_servers(setting: LaunchSetting, server: Server) -> list[Server]:
    """Returns the servers of its pool that may run it without this one, by name: they offer the agent, and
    nobody stopped it there. One that is offline is among them: it goes on when it is back."""
    offering = OfferedAgent.objects.filter(name=setting.agent, kind=setting.kind).values("server")
    stopped = ServerStop.objects.filter(setting=setting).values("server")
    others = Server.objects.filter(pools=setting.pool_id, pk__in=offering).exclude(pk__in=stopped)
    return list(others.exclude(pk=server.pk).order_by("name"))


def refusal_there(setting: LaunchSetting, server: Server) -> Refused | None:
    """Returns why it cannot be stopped there, or None."""
    facts = {"key": setting.key, "server": server.name, "pool": setting.pool.name}
    if not setting.pool.servers.filter(pk=server.pk).exists():
        return Refused(
            "not_in_pool",
            gettext("%(server)s is not in the pool “%(pool)s”.") % facts,
            gettext("No action is needed: the setting does not start on this server."),
        )
    if not other_servers(setting, server):
        return Refused(
            "only_server",
            gettext("%(key)s cannot be stopped on %(server)s: no other server in its pool can run it.")
            % facts,
            gettext("Disable the setting instead."),
        )
    return None


def stop_on_server(setting: LaunchSetting, server: Server, act: Act) -> bool:
    """Returns whether it was not stopped there before. Raises Refused.

    The lock of the setting lets two look one after the other, so that they never stop the last two servers.
    A planner that read its facts before finds another epoch and starts nothing here."""
    with transaction.atomic():
        current = LaunchSetting.objects.select_for_update(no_key=True).get(pk=setting.pk)
        if ServerStop.objects.filter(setting=current, server=server).exists():
            return False
        if refused := refusal_there(current, server):
            raise refused
        ServerStop.objects.create(setting=current, server=server, by=act.by, reason=act.reason, since=act.now)
        opened = Activation.objects.filter(setting=current, state__in=OPEN_ACTIVATIONS)
        opened.update(last_epoch=F("last_epoch") + 1)
        why = why_of(act.by, act.reason)
        note(current, "server_stop", "", "stopped", now=act.now, reason=why, by=act.by, server=server)
        act.record()
    _plan(current, act.now)
    return True


def start_on_server(setting: LaunchSetting, server: Server, act: Act) -> bool:
    """Returns whether it was stopped there. Of two that come at once one deletes the row."""
    with transaction.atomic():
        current = LaunchSetting.objects.select_for_update(no_key=True).get(pk=setting.pk)
        gone, _rows = ServerStop.objects.filter(setting=current, server=server).delete()
        if not gone:
            return False
        why = why_of(act.by, "")
        note(current, "server_stop", "stopped", "started", now=act.now, reason=why, by=act.by, server=server)
        act.record()
    _plan(current, act.now)
    return True


def _plan(setting: LaunchSetting, now: datetime) -> None:
    opened = Activation.objects.filter(setting=setting, state__in=OPEN_ACTIVATIONS)
    for pk in opened.values_list("pk", flat=True):
        plan_runs(pk, now)
