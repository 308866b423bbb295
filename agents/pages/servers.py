"""Servers: who is alive, what they offer and run, and what waits in their spools."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_safe

from agents.liveness import expected_servers, is_expected, servers_without_broker
from agents.models import Duty, OfferedAgent, Run, Server, ServerState
from agents.pages.states import DUTIES, RUNS, run_label, server_label
from agents.servers.admission import support_advice, support_problem, version_advice, version_problem
from agents.servers.operations import Cordon, Drain, RemoveServer, Uncordon
from console.operations.web import operation_buttons
from console.ui.amounts import coarse, duration, number
from console.ui.page import StateLabel, link, needs, page, render_panels

# -- problems of a server, in the same words on its page, in lists and on health -----------------------------


@dataclass(frozen=True, slots=True)
class ServerNote:
    """`works`: it runs all the same."""

    says: str
    what_to_do: str
    works: bool = False

    @property
    def tone(self) -> str:
        return "warn" if self.works else "bad"


def runs_without_broker(now: datetime) -> dict[int, int]:
    """Returns, for servers that have lost the broker, how many runs get nothing."""
    return {server.pk: runs for server, runs in servers_without_broker(now)}


def note_of(server: Server, now: datetime, unfed: dict[int, int], expected: bool = True) -> ServerNote | None:
    """Returns None for one that is heard, obeys, has the broker and a supported version. `unfed`: of
    `runs_without_broker`."""
    state = server.state(now)
    if state is ServerState.SILENT:
        return _silent(server, now) if expected else None
    if state is ServerState.NEW:
        return None
    if not server.obeys(now):
        return ServerNote(
            _("online, but has not applied the desired state for %(time)s")
            % {"time": duration(round(server.seconds_disobeying(now)))},
            _(
                "Enabling or disabling a setting has no effect on this server. The logs of the site "
                "and of the server's KMA show the cause."
            ),
        )
    if count := unfed.get(server.pk, 0):
        text = ngettext(
            "not connected to the broker: %(n)s instance is not receiving messages",
            "not connected to the broker: %(n)s instances are not receiving messages",
            count,
        )
        return ServerNote(
            text % {"n": number(count)},
            _(
                "Check the address in KMA_AMQP_URL and the network between this server and the "
                "broker. The KMA log shows the cause. Meanwhile, messages wait on the broker."
            ),
        )
    if problem := support_problem(server.name, server.kma_version):
        return ServerNote(problem, support_advice(server.kma_version), works=True)
    return None


def _silent(server: Server, now: datetime) -> ServerNote:
    assert server.last_seen_at is not None
    if server.refused_version is not None:
        return ServerNote(
            version_problem(server.name, server.refused_version), version_advice(server.refused_version)
        )
    return ServerNote(
        _("no heartbeat for %(time)s") % {"time": coarse(now - server.last_seen_at)},
        _(
            "Check whether the KMA on this server is running. While it cannot reach the site, the "
            "KMA keeps its records and the instances continue. If the server is gone for good, "
            "delete it."
        ),
    )


VIEW = "agents.view_server"
SKEW_TOLERATED_SECONDS = 5.0
PAST_RUNS = 20
SHOWN = 50


@dataclass(frozen=True, slots=True)
class RunLink:
    """The key of a setting that runs there, and the page of its activation."""

    key: str
    url: str


@dataclass(frozen=True, slots=True)
class ServerRow:
    """`agents` and `runs`: only where a page shows them."""

    server: Server
    state: StateLabel
    expected: bool = True
    note: ServerNote | None = None
    agents: Sequence[OfferedAgent] = ()
    runs: Sequence[RunLink] = ()

    @property
    def duty(self) -> StateLabel | None:
        """Returns None for a server in service: nothing is to be said."""
        return None if self.server.duty == Duty.ACTIVE else DUTIES[self.server.duty]

    @property
    def skewed(self) -> bool:
        return abs(self.server.clock_skew_seconds) > SKEW_TOLERATED_SECONDS

    @property
    def spool_tone(self) -> str:
        if self.server.spool_full:
            return "bad"
        return "warn" if self.server.spool_bytes * 2 > self.server.spool_limit_bytes > 0 else ""

    @property
    def pools(self) -> str:
        return ", ".join(pool.name for pool in self.server.pools.all())


def server_rows(now: datetime) -> list[ServerRow]:
    """Returns what each says of itself. Four queries."""
    expected, unfed = set(expected_servers().values_list("pk", flat=True)), runs_without_broker(now)
    servers = Server.objects.select_related("duty_by").prefetch_related("pools")
    return [
        ServerRow(
            server,
            server_label(server, now),
            server.pk in expected,
            note_of(server, now, unfed, server.pk in expected),
        )
        for server in servers
    ]


def with_content(rows: Collection[ServerRow]) -> list[ServerRow]:
    """The same with what each offers and runs. Two queries."""
    servers = [row.server.pk for row in rows]
    agents: dict[int, list[OfferedAgent]] = defaultdict(list)
    for agent in OfferedAgent.objects.filter(server__in=servers).order_by("name"):
        agents[agent.server_id].append(agent)
    runs = _runs_of(servers)
    return [replace(row, agents=agents[row.server.pk], runs=runs[row.server.pk]) for row in rows]


def _runs_of(servers: Collection[int]) -> dict[int, list[RunLink]]:
    """Returns the runs of 50 servers, which may be thousands: an activation has one link, shared by all of
    them."""
    still = Run.objects.filter(closed_at=None, server__in=servers).order_by()
    links: dict[UUID, RunLink] = {}
    found: dict[int, list[RunLink]] = defaultdict(list)
    for server, activation, key in still.values_list("server", "activation", "activation__setting__key"):
        if activation not in links:
            links[activation] = RunLink(key, link("activation", activation))
        found[server].append(links[activation])
    for runs in found.values():
        runs.sort(key=lambda run: run.key)
    return found


@require_safe
@needs(VIEW)
def server_list(request: HttpRequest) -> HttpResponseBase:
    now = timezone.now()
    wanted = request.GET.get("state", "")
    rows = [row for row in server_rows(now) if wanted in ("", row.server.state(now).value)]
    listed = Paginator(rows, SHOWN).get_page(request.GET.get("page"))
    return page(
        request,
        "agents/servers.html",
        title=_("Servers"),
        section="servers",
        rows=with_content(list(listed.object_list)),
        pages=listed,
        chosen=wanted if wanted in ServerState.values else "",
        kept=f"state={wanted}" if wanted in ServerState.values else "",
        may_add=request.user.has_perm("agents.add_server"),
    )


@require_safe
@needs(VIEW)
def server_page(request: HttpRequest, name: str) -> HttpResponseBase:
    server = get_object_or_404(Server.objects.select_related("duty_by").prefetch_related("pools"), name=name)
    now = timezone.now()
    current = list(server.runs.filter(closed_at=None).select_related("activation__setting", "server"))
    past = (
        server.runs.exclude(closed_at=None)
        .select_related("activation__setting")
        .order_by("-closed_at", "-id")[:PAST_RUNS]
    )
    return page(
        request,
        "agents/server.html",
        note=note_of(server, now, runs_without_broker(now), is_expected(server)),
        title=server.name,
        section="servers",
        crumbs=[(_("Servers"), link("servers"))],
        server=server,
        row=ServerRow(server, server_label(server, now), agents=list(server.offered_agents.all())),
        current=[(run, run_label(run, now)) for run in current],
        past=[(run, RUNS[run.state]) for run in past],
        stops=server.setting_stops.select_related("setting", "by").order_by("setting__key")[:SHOWN],
        buttons=operation_buttons(request.user, server, Uncordon, Cordon, Drain, RemoveServer),
        tokens=server.tokens.filter(revoked_at=None),
        notes=render_panels("server_notes", request, server),
        panels=render_panels("server", request, server),
        may_change=request.user.has_perm("agents.change_server"),
    )
