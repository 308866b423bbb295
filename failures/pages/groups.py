"""Failures of an activation in groups: by server, then by fingerprint; and what the latest of a setting
were."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import QuerySet, Sum
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext as _

from agents.models import Activation, LaunchSetting, Server
from console.lists.keyset import counted
from console.ui.page import Panel, link
from failures.error_groups.queries import (
    Alike,
    Here,
    Pair,
    counts_of_activation,
    failures_on,
    fingerprint_url,
)
from failures.error_groups.rules import alone, oddity
from failures.error_groups.splits import known_in
from failures.models import FailureProtocol, KnownError
from failures.pages.protocol_table import is_ahead
from failures.pages.protocols import VIEW, protocols_url

GROUPS_PER_SERVER = 30
LATEST = 5


@dataclass(frozen=True, slots=True)
class Group:
    """`alone`: other servers made enough attempts in the activation, and none of them failed so. `example`:
    what the latest of them said, None when retention has deleted it; `example_url`: it whole. `url`: its
    protocols, `about`: the kind."""

    alike: Alike
    alone: bool
    example: str | None
    example_url: str
    known: KnownError | None
    url: str
    about: str


@dataclass(frozen=True, slots=True)
class ServerGroups:
    name: str
    count: int
    groups: list[Group]
    left_out: int
    url: str


def by_server(activation: UUID, found: Iterable[Alike], tried: Mapping[str, int]) -> list[ServerGroups]:
    """Largest groups first; three queries, however many groups there are. `tried`: attempts by server."""
    servers: dict[str, list[Alike]] = defaultdict(list)
    counts: dict[str, int] = defaultdict(int)
    for alike in found:
        servers[alike.server_name].append(alike)
        counts[alike.fingerprint] += alike.count
    shown = [alike for alikes in servers.values() for alike in alikes[:GROUPS_PER_SERVER]]
    latest = FailureProtocol.objects.filter(pk__in=[alike.latest for alike in shown])
    examples = dict(latest.values_list("pk", "exception_text"))
    known = known_in({(alike.fingerprint, alike.setting_key) for alike in shown})
    every = sum(tried.values())

    def odd(alike: Alike) -> bool:
        return alone(
            alike.count, counts[alike.fingerprint] - alike.count, every - tried.get(alike.server_name, 0)
        )

    return [_of_server(activation, name, servers[name], odd, examples, known) for name in sorted(servers)]


def _of_server(
    activation: UUID,
    name: str,
    alikes: list[Alike],
    odd: Callable[[Alike], bool],
    examples: Mapping[UUID, str],
    known: Mapping[Pair, KnownError],
) -> ServerGroups:
    groups = [
        Group(
            alike,
            odd(alike),
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
    return ServerGroups(name, total, groups, len(alikes) - len(groups), url)


def _tried(activation: Activation) -> tuple[dict[str, int], dict[str, int]]:
    """Returns by server messages handled well, attempts that failed."""
    rows = (
        activation.runs.order_by()
        .values_list("server__name")
        .annotate(well=Sum("handled"), badly=Sum("failed"))
    )
    totals = {name: (well, badly) for name, well, badly in rows}
    return {name: well for name, (well, _) in totals.items()}, {
        name: badly for name, (_, badly) in totals.items()
    }


def activation_panel(request: HttpRequest, activation: Activation) -> Panel | None:
    if not request.user.has_perm(VIEW):
        return None
    handled, failed = _tried(activation)
    tried = {name: handled[name] + failed[name] for name in handled}
    servers = by_server(activation.pk, counts_of_activation(activation.pk), tried)
    url = protocols_url(activation=activation.pk)
    context = {"servers": servers, "url": url, "odd": oddity(handled, failed)}
    return {"title": _("Failures by server"), "template": "failures/by_server.html", "context": context}


def setting_panel(request: HttpRequest, setting: LaunchSetting) -> Panel | None:
    if not request.user.has_perm(VIEW):
        return None
    rows = FailureProtocol.objects.filter(setting=setting)
    context = {"latest": _latest(rows), "total": counted(rows), "url": protocols_url(setting=setting.key)}
    return {"title": _("Latest failures"), "template": "failures/latest.html", "context": context}


def latest_of_server(request: HttpRequest, server: Server) -> Panel | None:
    if not request.user.has_perm(VIEW):
        return None
    rows = FailureProtocol.objects.filter(server=server)
    url = protocols_url(server=server.name)
    context = {"latest": _latest(rows), "total": counted(rows), "url": url, "of_server": True}
    return {"title": _("Latest failures"), "template": "failures/latest.html", "context": context}


def _latest(rows: QuerySet[FailureProtocol]) -> list[tuple[FailureProtocol, bool]]:
    """Returns with each whether its clock was ahead, which would keep it on top for as long."""
    latest = rows.order_by("-occurred_at").defer("traceback", "properties")[:LATEST]
    return [(protocol, is_ahead(protocol)) for protocol in latest]


# -- the panel of a server: what fails on it, of all settings, and where else --------------------------------


WEEK = timedelta(days=7)
MOST_KINDS = 30


@dataclass(frozen=True, slots=True)
class GroupRow:
    """`setting_url`: empty where the setting is gone. `example`: what the latest of them said, None when
    retention has deleted it; `url`: its protocols there, empty where the setting has no name, by which a list
    could be narrowed; `elsewhere_url`: those of the other server, or of several the kind, which tells them
    apart; `about`: the kind."""

    here: Here
    setting_url: str
    example: str | None
    example_url: str
    known: KnownError | None
    url: str
    elsewhere_url: str
    about: str


def failures_of_server(request: HttpRequest, server: Server) -> Panel | None:
    if not request.user.has_perm(VIEW):
        return None
    since: datetime = timezone.now() - WEEK
    found = failures_on(server.name, since, MOST_KINDS)
    latest = FailureProtocol.objects.filter(pk__in=[here.latest.latest for here in found.kinds])
    examples = dict(latest.values_list("pk", "exception_text"))
    known = known_in({here.pair for here in found.kinds})
    keys = {here.latest.setting_key for here in found.kinds}
    settings = set(LaunchSetting.objects.filter(key__in=keys).values_list("key", flat=True))
    context = {
        "kinds": [_kind(server, here, examples, known.get(here.pair), settings) for here in found.kinds],
        "alone": sum(here.alone for here in found.kinds),
        "left_out": found.left_out,
        "cut": found.cut,
        "url": protocols_url(server=server.name),
    }
    return {
        "title": _("Failures by setting"),
        "template": "failures/on_server.html",
        "context": context,
    }


def _kind(
    server: Server, here: Here, examples: Mapping[UUID, str], known: KnownError | None, settings: set[str]
) -> GroupRow:
    fingerprint, setting = here.pair

    def protocols(name: str) -> str:
        return protocols_url(server=name, setting=setting, fingerprint=fingerprint) if setting else ""

    about = fingerprint_url(fingerprint)
    return GroupRow(
        here=here,
        setting_url=link("setting", setting) if setting in settings else "",
        example=examples.get(here.latest.latest),
        example_url=link("protocol", here.latest.latest),
        known=known,
        url=protocols(server.name),
        elsewhere_url=protocols(*here.elsewhere) if len(here.elsewhere) == 1 else about,
        about=about,
    )
