"""Which servers are heard and have lost the broker, by what their KMAs say themselves."""

from datetime import datetime

from django.db.models import Count, Q

from agents.models import Kind, RunPhase, Server
from agents.models.server import lost_before

MOST = 2000


def servers_without_broker(now: datetime) -> list[tuple[Server, int]]:
    """They run message agents, and none of these is connected; with how many runs get nothing. Two
    queries."""
    running = Q(
        runs__wanted=True,
        runs__closed_at=None,
        runs__state__in=(RunPhase.STARTING, RunPhase.RUNNING),
        runs__activation__setting__kind=Kind.MESSAGE,
    )
    heard = Server.objects.filter(last_seen_at__gt=lost_before(now))
    counted = heard.annotate(
        open=Count("runs", running), fed=Count("runs", running & Q(runs__connected=True))
    )
    found = counted.filter(open__gt=0, fed=0).prefetch_related("pools")[:MOST]
    return [(server, server.open) for server in found]
