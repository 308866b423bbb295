"""What is wrong with a server as a whole, and what to do: the same words on its page, in lists, on health."""

from dataclasses import dataclass
from datetime import datetime

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from agents.kma_versions import version_advice, version_problem
from agents.models import Server, ServerState
from agents.services.broker_links import servers_without_broker
from console.ui.amounts import coarse, duration, number


@dataclass(frozen=True, slots=True)
class ServerNote:
    says: str
    what_to_do: str


def runs_without_broker(now: datetime) -> dict[int, int]:
    """Of the servers that have lost the broker how many runs get nothing."""
    return {server.pk: runs for server, runs in servers_without_broker(now)}


def note_of(server: Server, now: datetime, unfed: dict[int, int], expected: bool = True) -> ServerNote | None:
    """None for one that is heard, obeys and has the broker. `unfed`: of `runs_without_broker`."""
    state = server.state(now)
    if state is ServerState.SILENT:
        return _silent(server, now) if expected else None
    if state is ServerState.NEW:
        return None
    if not server.obeys(now):
        return ServerNote(
            _("heard, but has not taken the desired state for %(time)s")
            % {"time": duration(round(server.seconds_disobeying(now)))},
            _(
                "What is enabled or disabled has no effect there. The logs of the site and of its KMA say "
                "why."
            ),
        )
    if count := unfed.get(server.pk, 0):
        text = ngettext(
            "not connected to the broker: %(n)s instance gets no messages",
            "not connected to the broker: %(n)s instances get no messages",
            count,
        )
        return ServerNote(
            text % {"n": number(count)},
            _(
                "Check the address in KMA_AMQP_URL and the network between this server and the broker; the "
                "KMA's log "
                "says why the connection fails. Messages wait on the broker meanwhile."
            ),
        )
    return None


def _silent(server: Server, now: datetime) -> ServerNote:
    assert server.last_seen_at is not None
    if server.refused_version is not None:
        return ServerNote(
            version_problem(server.name, server.refused_version), version_advice(server.refused_version)
        )
    return ServerNote(
        _("silent for %(time)s") % {"time": coarse(now - server.last_seen_at)},
        _(
            "Is its KMA running? It keeps its records and goes on with its runs while it cannot reach us. "
            "If it is gone for good, delete the server."
        ),
    )
