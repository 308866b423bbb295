"""Which servers somebody counts on: every page and check that speaks of a missing server asks here."""

from django.db.models import Exists, OuterRef, QuerySet

from agents.models import Pool, Server, ServerToken


def expected_servers() -> QuerySet[Server]:
    """In a pool, or with a valid token. Of another one nothing is missing when it is not heard."""
    pools = Pool.servers.through.objects.filter(server=OuterRef("pk"))
    tokens = ServerToken.objects.filter(server=OuterRef("pk"), revoked_at=None)
    return Server.objects.filter(Exists(pools) | Exists(tokens))


def is_expected(server: Server) -> bool:
    return expected_servers().filter(pk=server.pk).exists()
