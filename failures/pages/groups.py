"""Failures of an activation in groups: by server, then by fingerprint; and what the latest of a setting were."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from uuid import UUID

from django.db.models import Sum
from django.http import HttpRequest
from django.utils.translation import gettext as _

from agents.models import Activation, LaunchSetting, Server
from agents.pages.consoles import link
from agents.pages.lists import counted
from agents.panels import Panel
from failures.fingerprints.parts import known_in
from failures.models import FailureProtocol, KnownError
from failures.odd_server import Oddity, oddity
from failures.pages.protocols import VIEW, protocols_url
from failures.pages.urls_of import fingerprint_url
from failures.tallies.owners import Pair
from failures.tallies.reading import Alike, of_activation

GROUPS_PER_SERVER = 30
LATEST = 5


@dataclass(frozen=True, slots=True)
class Group:
    """`example`: what the latest of them said, None when retention has deleted it; `example_url`: it whole. `url`: its
    protocols, `about`: the kind."""

    alike: Alike
    example: str | None
    example_url: str
    known: KnownError | None
    url: str
    about: str


@dataclass(frozen=True, slots=True)
class OfServer:
    name: str
    count: int
    groups: list[Group]
    left_out: int
    url: str


def by_server(activation: UUID, found: Iterable[Alike]) -> list[OfServer]:
    """Largest groups first; three queries, however many groups there are."""
    servers: dict[str, list[Alike]] = defaultdict(list)
    for alike in found:
        servers[alike.server_name].append(alike)
    shown = [alike for alikes in servers.values() for alike in alikes[:GROUPS_PER_SERVER]]
    latest = FailureProtocol.objects.filter(pk__in=[alike.latest for alike in shown])
    examples = dict(latest.values_list("pk", "exception_text"))
    known = known_in({(alike.fingerprint, alike.setting_key) for alike in shown})
    return [_of_server(activation, name, servers[name], examples, known) for name in sorted(servers)]


def _of_server(
    activation: UUID,
    name: str,
    alikes: list[Alike],
    examples: Mapping[UUID, str],
    known: Mapping[Pair, KnownError],
) -> OfServer:
    groups = [
        Group(
            alike,
            examples.get(alike.latest),
            link("protocol", alike.latest),
            known.get((alike.fingerprint, alike.setting_key)),
            protocols_url(activation=activation, server=name, fingerprint=alike.fingerprint),
            fingerprint_url(alike.fingerprint),
        )
        for alike in alikes[:GROUPS_PER_SERVER]
    ]
    total = sum(alike.count for alike in alikes)
    url = protocols_url(activation=activation, server=name)
    return OfServer(name, total, groups, len(alikes) - len(groups), url)


def odd_server(activation: Activation) -> Oddity | None:
    rows = activation.runs.order_by().values_list("server__name").annotate(well=Sum("handled"), badly=Sum("failed"))
    totals = {name: (well, badly) for name, well, badly in rows}
    return oddity({name: well for name, (well, _) in totals.items()}, {name: bad for name, (_, bad) in totals.items()})


def activation_panel(request: HttpRequest, activation: Activation) -> Panel | None:
    if not request.user.has_perm(VIEW):
        return None
    servers = by_server(activation.pk, of_activation(activation.pk))
    url = protocols_url(activation=activation.pk)
    context = {"servers": servers, "url": url, "odd": odd_server(activation)}
    return {"title": _("Failures by server"), "template": "failures/by_server.html", "context": context}


def setting_panel(request: HttpRequest, setting: LaunchSetting) -> Panel | None:
    if not request.user.has_perm(VIEW):
        return None
    rows = FailureProtocol.objects.filter(setting=setting)
    latest = list(rows.order_by("-occurred_at").defer("traceback", "properties")[:LATEST])
    context = {"latest": latest, "total": counted(rows), "url": protocols_url(setting=setting.key)}
    return {"title": _("Latest failures"), "template": "failures/latest.html", "context": context}


def latest_of_server(request: HttpRequest, server: Server) -> Panel | None:
    if not request.user.has_perm(VIEW):
        return None
    rows = FailureProtocol.objects.filter(server=server)
    latest = list(rows.order_by("-occurred_at").defer("traceback", "properties")[:LATEST])
    url = protocols_url(server=server.name)
    context = {"latest": latest, "total": counted(rows), "url": url, "of_server": True}
    return {"title": _("Latest failures"), "template": "failures/latest.html", "context": context}
