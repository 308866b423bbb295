"""Which agents servers offer, and what is said of a name that none does."""

from collections import defaultdict

from django.utils.translation import gettext as _

from agents.models import OfferedAgent, Pool


def offers() -> list[tuple[str, str]]:
    """Each agent that some server offers, with the servers' names."""
    servers: dict[str, list[str]] = defaultdict(list)
    for name, server in OfferedAgent.objects.order_by("name", "server__name").values_list(
        "name", "server__name"
    ):
        servers[name].append(server)
    return [(name, ", ".join(names)) for name, names in servers.items()]


def offer_warning(agent: str, pool: Pool | None) -> str:
    """Why this agent could not start, or nothing. Without a pool any server will do."""
    offering = OfferedAgent.objects.filter(name=agent)
    if agent and pool is not None and (refused := pool.refusal_of(agent)):
        return f"{refused} {pool.what_it_allows()}"
    if not agent or (pool is None and offering.exists()):
        return ""
    if not offering.exists():
        names = ", ".join(name for name, _servers in offers()) or _("none so far")
        return _("No server offers the agent “%(agent)s”: it could not start. Offered are: %(names)s.") % {
            "agent": agent,
            "names": names,
        }
    if offering.filter(server__pools=pool).exists():
        return ""
    servers = ", ".join(offering.order_by("server__name").values_list("server__name", flat=True))
    text = _(
        "No server of the pool “%(pool)s” offers the agent “%(agent)s”: it could not start. %(servers)s do."
    )
    return text % {"pool": pool, "agent": agent, "servers": servers}
