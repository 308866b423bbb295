"""Watches servers on which a setting fails more often than on its others, by the minutes that KMAs report: a
disk, a network or a version of that one server."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.db.models import F, Sum
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from agents.models import LaunchSetting, Server
from alerts.kinds import AlertKind, Observation
from alerts.models import Severity
from alerts.rules import Thresholds
from console.processes import once_per
from console.ui.amounts import number
from console.ui.page import link
from failures.error_groups.rules import ENOUGH_FAILURES, TIMES_WORSE, Attempts, odd_servers
from metrics.models import Hour, Minute
from metrics.rules import HOUR, minute_of

# A record of a minute comes once in a minute.
EVERY = timedelta(seconds=55)
MOST_SETTINGS = 500
FAILED = F("failed") + F("temporary")


def attempts_by_server(now: datetime) -> dict[int, dict[int, Attempts]]:
    """Returns them by setting and server, from the hour before this one of the clock on: of settings with
    failures. Of a setting on a server an hour holds what was packed, and minutes what was not."""
    hour = minute_of(now) // HOUR - 1
    totals = Hour.objects.filter(span__gte=hour, scope__setting__isnull=False, scope__server=None)
    failing = totals.values("scope__setting").annotate(n=Sum(FAILED)).filter(n__gte=ENOUGH_FAILURES)
    settings = list(failing.order_by("-n").values_list("scope__setting", flat=True)[:MOST_SETTINGS])
    made: dict[tuple[int, int], list[int]] = defaultdict(lambda: [0, 0])
    for table, since in ((Hour, hour), (Minute, hour * HOUR)):
        rows = table.objects.filter(
            span__gte=since, scope__setting__in=settings, scope__server__isnull=False
        ).order_by()
        sums = rows.values_list("scope__setting", "scope__server").annotate(
            Sum("succeeded"), unsuccessful=Sum(FAILED)
        )
        for setting, server, succeeded, failed in sums:
            made[setting, server][0] += succeeded + failed
            made[setting, server][1] += failed
    found: dict[int, dict[int, Attempts]] = defaultdict(dict)
    for (setting, server), (all_, failed) in made.items():
        found[setting][server] = Attempts(all_, failed)
    return found


def odd(now: datetime, live: frozenset[str]) -> Iterator[Observation]:
    """Looks once a minute; in between nothing is known anew."""
    if not once_per("odd servers", EVERY, now):
        yield from (Observation(subject, None) for subject in live)
        return
    attempts = attempts_by_server(now)
    settings = LaunchSetting.objects.in_bulk(list(attempts))
    servers = dict(Server.objects.values_list("pk", "name"))
    found = []
    for pk, each in attempts.items():
        setting = settings.get(pk)
        by_name = {servers[server]: (server, of) for server, of in each.items() if server in servers}
        if setting is None:
            continue
        for name, others in odd_servers({name: of for name, (_pk, of) in by_name.items()}).items():
            server, here = by_name[name]
            facts = {
                "setting": setting.key,
                "server": name,
                "failed": here.failed,
                "made": here.made,
                "others_failed": others.failed,
                "others_made": others.made,
            }
            # Where the others did not fail at all: as if one of their attempts had.
            value = round(here.rate / max(others.rate, 1 / others.made), 2)
            found.append(
                Observation(
                    f"{setting.key}@{name}",
                    max(value, TIMES_WORSE),
                    setting=pk,
                    server=server,
                    pools=frozenset([setting.pool_id]),
                    facts=facts,
                )
            )
    yield from sorted(found, key=lambda seen: -(seen.value or 0.0))


def _says(facts: Mapping[str, Any], value: float) -> str:
    text = _(
        "“%(key)s”: the failure rate on %(server)s is higher than on the other servers. "
        "Failed attempts: %(failed)s of %(made)s; on the other servers: %(others_failed)s of "
        "%(others_made)s."
    )
    counts = ("failed", "made", "others_failed", "others_made")
    told = {name: number(facts[name]) for name in counts}
    return text % {"key": facts["setting"], "server": facts["server"], **told}


ODD = AlertKind(
    name="server_odd",
    label=gettext_lazy("Failure rate higher than on other servers"),
    severity=Severity.WARNING,
    limits=Thresholds(TIMES_WORSE, TIMES_WORSE, close_after=timedelta(minutes=10)),
    unit=gettext_lazy("ratio of the failure rate on this server to that on the others"),
    says=_says,
    measure=lambda value: f"×{number(value, 1)}",
    what_to_do=gettext_lazy(
        "Compare this server with the others: agent version, disk, memory, network, and "
        "reachability of the services that the agent uses. If needed, stop the setting on this "
        "server or cordon the server."
    ),
    url=lambda facts: link("server", facts["server"]),
    observe=odd,
)

KINDS = (ODD,)
