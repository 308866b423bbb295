"""Rows that several pages show, read in few queries."""

from collections import defaultdict
from collections.abc import Iterable

from django.utils.translation import gettext as _

from agents.models import Activation, BreakerTrip, GroupMember, OfferedAgent, Pool, Schedule
from agents.models.activation import OPEN_ACTIVATIONS
from agents.pages.shown import Facts
from agents.pools.withholding import withheld_runs


def facts_of(settings: Iterable[int]) -> dict[int, Facts]:
    """Whether each was started, was switched off by its breaker, is in a group, has a schedule, is withheld.

    Five queries."""
    wanted = list(settings)
    started = Activation.objects.filter(setting__in=wanted, state__in=OPEN_ACTIVATIONS)
    trips = list(BreakerTrip.objects.filter(ended_at=None).values_list("setting", "group"))
    tripped, groups = {setting for setting, _group in trips}, {group for _setting, group in trips if group}
    running = set(started.order_by().values_list("setting", flat=True))
    group_of = dict(GroupMember.objects.filter(setting__in=wanted).values_list("setting", "group"))
    timed = set(Schedule.objects.filter(setting__in=wanted).order_by().values_list("setting", flat=True))
    withheld = set(withheld_runs().order_by().values_list("activation__setting", flat=True))
    return {
        pk: Facts(
            pk in running,
            pk in tripped,
            pk in group_of,
            group_of.get(pk) in groups,
            pk in timed,
            pk in withheld,
        )
        for pk in wanted
    }


# -- which agents servers offer, and what is said of a name that none does -----------------------------------


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
