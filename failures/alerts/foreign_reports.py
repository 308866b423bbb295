"""The alert about servers that report of runs which they never had."""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.utils.translation import gettext_lazy, ngettext

from agents.alerts.deciding import Thresholds
from agents.alerts.kinds import Kind, Observation, register
from agents.models import Severity
from console.ui.amounts import number
from console.ui.page import link
from failures.models import SpoolMark

QUIET = timedelta(hours=24)
MOST = 500


def register_kind() -> None:
    register(SET_ASIDE)


def observe(now: datetime, live: frozenset[str]) -> Iterator[Observation]:
    """Of each server whose reports were set aside lately: how many, of the spools that brought them."""
    rows = SpoolMark.objects.filter(set_aside__gt=0, set_aside_at__gt=now - QUIET).order_by("-set_aside_at")
    counts: dict[str, int] = {}
    servers: dict[str, int] = {}
    for name, pk, count in rows.values_list("server__name", "server", "set_aside")[:MOST]:
        counts[name], servers[name] = counts.get(name, 0) + count, pk
    for name, count in counts.items():
        yield Observation(name, float(count), server=servers[name], facts={"server": name})


def _says(facts: Mapping[str, Any], value: float) -> str:
    text = ngettext(
        "%(server)s sent %(n)s report about a run that it never had.",
        "%(server)s sent %(n)s reports about runs that it never had.",
        round(value),
    )
    return text % {"server": facts["server"], "n": number(round(value))}


SET_ASIDE = Kind(
    name="reports_set_aside",
    label=gettext_lazy("Reports about other servers' runs"),
    severity=Severity.BAD,
    limits=Thresholds(1.0, 1.0),
    unit=gettext_lazy("reports set aside"),
    says=_says,
    measure=number,
    what_to_do=gettext_lazy(
        "Somebody may use this server's token. Check which host sends with it; if in doubt, revoke the token "
        "and issue "
        "a new one. The reports changed nothing; the server's page lists them. The alert closes after a day "
        "without "
        "another one."
    ),
    url=lambda facts: link("server", facts["server"]),
    observe=observe,
)
