"""Removing a server that is gone for good."""

from datetime import datetime

from django.db import transaction
from django.utils.translation import gettext as _

from agents.models import Interruption, Run, Server, ServerState, StateChange


class RemovalRefused(Exception):
    """Nothing was removed; the text says why and what helps."""


def removal_refusal(server: Server, now: datetime) -> str:
    """Why this server cannot be removed now, or nothing."""
    if server.state(now) is ServerState.ALIVE:
        return _("The server %(name)s is alive: stop its KMA first.") % {"name": server.name}
    still = Run.objects.filter(server=server, closed_at=None).select_related("activation__setting")
    if keys := sorted({run.activation.setting.key for run in still}):
        text = _(
            "The server %(name)s still has open runs (%(keys)s): take it out of their pools, or switch these "
            "settings "
            "off, and wait until the runs are closed."
        )
        return text % {"name": server.name, "keys": ", ".join(keys)}
    return ""


@transaction.atomic
def remove_server(server: Server, now: datetime) -> None:
    """Its tokens, offers, closed runs and their interruptions go with it; protocols, letters, trips and the
    history of settings stay, with its name. Raises RemovalRefused.

    The lock keeps a heartbeat and a planner out between the question and the removal."""
    current = Server.objects.select_for_update().get(pk=server.pk)
    if refused := removal_refusal(current, now):
        raise RemovalRefused(refused)
    StateChange.objects.filter(server=current, setting=None).delete()
    StateChange.objects.filter(server=current).update(server=None)
    Interruption.objects.filter(server=current).delete()
    Run.objects.filter(server=current).delete()
    current.delete()
