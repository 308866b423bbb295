"""Servers: who is alive, what they offer and run, and what waits in their spools."""

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime

from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from agents import panels
from agents.models import Duty, OfferedAgent, Run, Server, ServerState
from agents.pages.consoles import link, needs, page
from agents.pages.server_actions import duty_buttons
from agents.pages.shown import DUTIES, RUNS, Shown, server_shown
from agents.services.expected import expected_servers

VIEW = "agents.view_server"
SKEW_TOLERATED_SECONDS = 5.0
PAST_RUNS = 20


@dataclass(frozen=True, slots=True)
class ServerRow:
    server: Server
    state: Shown
    agents: list[OfferedAgent]
    runs: list[Run]
    expected: bool = True

    @property
    def duty(self) -> Shown | None:
        """None for a server in service: nothing is to be said."""
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
    agents: dict[int, list[OfferedAgent]] = defaultdict(list)
    for agent in OfferedAgent.objects.order_by("name"):
        agents[agent.server_id].append(agent)
    runs: dict[int, list[Run]] = defaultdict(list)
    still = Run.objects.filter(closed_at=None).prefetch_related("activation__setting")
    for run in still.order_by("activation__setting"):
        runs[run.server_id].append(run)
    expected = set(expected_servers().values_list("pk", flat=True))
    return [
        ServerRow(server, server_shown(server, now), agents[server.pk], runs[server.pk], server.pk in expected)
        for server in Server.objects.select_related("duty_by").prefetch_related("pools")
    ]


@require_safe
@needs(VIEW)
def server_list(request: HttpRequest) -> HttpResponseBase:
    now = timezone.now()
    wanted = request.GET.get("state", "")
    rows = [row for row in server_rows(now) if wanted in ("", row.server.state(now).value)]
    return page(
        request,
        "agents/servers.html",
        title=_("Servers"),
        section="servers",
        rows=rows,
        chosen=wanted if wanted in ServerState.values else "",
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
        .order_by("-created_at", "-id")[:PAST_RUNS]
    )
    return page(
        request,
        "agents/server.html",
        title=server.name,
        section="servers",
        crumbs=[(_("Servers"), link("servers"))],
        server=server,
        row=ServerRow(server, server_shown(server, now), list(server.offered_agents.all()), current),
        current=[(run, RUNS[run.state]) for run in current],
        past=[(run, RUNS[run.state]) for run in past],
        buttons=duty_buttons(request, server),
        tokens=server.tokens.filter(revoked_at=None),
        panels=panels.render("server", request, server),
        may_change=request.user.has_perm("agents.change_server"),
    )
