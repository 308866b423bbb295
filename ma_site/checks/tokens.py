"""Every server that is used has a token, and no one more than two."""

from collections.abc import Iterator
from datetime import datetime

from django.db.models import Count, Exists, OuterRef, Q

from agents.models import Pool, Server
from agents.services.tokens import VALID_AT_A_TIME
from ma_site.checks.finding import Finding, bad, good, register

POOLS = Pool.servers.through.objects.filter(server=OuterRef("pk"))


@register("tokens", 90)
def check(now: datetime) -> Iterator[Finding]:
    valid = Count("tokens", filter=Q(tokens__revoked_at=None))
    # A server that was made by name alone and is in no pool yet has nothing to do.
    servers = list(Server.objects.annotate(valid=valid).filter(Q(valid__gt=0) | Exists(POOLS)))
    for server in servers:
        if server.valid == 0:
            yield bad(f"{server.name} has no valid token", f"./ma manage create_server {server.name}")
        elif server.valid > VALID_AT_A_TIME:
            yield bad(f"{server.name} has {server.valid} valid tokens", "Revoke the old ones in the admin.")
    if all(0 < server.valid <= VALID_AT_A_TIME for server in servers):
        yield good(f"{len(servers)} servers, each with a valid token")
