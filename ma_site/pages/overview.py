"""The operations overview, which is the index of the site: is something wrong, since when, how much, what to
do."""

from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponseBase
from django.template.response import TemplateResponse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext
from django.views.decorators.http import require_safe

from agents.models import OfferedAgent, ServerState
from agents.pages.acknowledgements import number_waiting
from agents.pages.servers import server_rows
from agents.pools.rights import may_anywhere
from alerts.pages.alerts import VIEW as SEE_ALERTS
from alerts.pages.alerts import badge as open_alerts_badge
from console.lists.columns import NUMBER, address_of
from console.lists.keyset import counted
from console.ui.page import Text, all_tabs, navigation_for, needs, page, refreshes_another
from dlq.models import DeadLetter, LetterState
from dlq.queues.queries import QueueRow, queue_rows, unknown_row
from dlq.search.visibility import SEE_ALL as SEE_LETTERS
from failures.models import FailureProtocol
from failures.pages.protocols import VIEW as SEE_PROTOCOLS
from ma_site.demo import DEMO_PREFIX
from ma_site.demo import POOL as DEMO_POOL
from ma_site.pages.attention import needs_of
from ma_site.pages.bulk import bulk_links
from ma_site.pages.health import quick_parts
from ma_site.pages.table import (
    OFF,
    STATES,
    Selection,
    SettingRow,
    setting_rows,
    settings_listing,
    with_curves,
)
from metrics.pages.panels import CURVES, installation_charts

VIEW = "agents.view_launchsetting"
NEW = timedelta(hours=1)
# Rows of what needs attention; more where somebody asks for all of them.
MOST, MOST_OF_ALL = 16, 500


@require_safe
def overview(request: HttpRequest) -> TemplateResponse:
    """Renders for everybody who may sign in; without the right to see settings it says so instead of showing
    them."""
    if not request.user.has_perm(VIEW):
        return page(request, "ma_site/nothing.html", title=_("Overview"), section="overview")
    now = timezone.now()
    rows, servers = setting_rows(now, request.user), server_rows(now)
    dead = (
        [*queue_rows([row.setting for row in rows]), unknown_row()]
        if request.user.has_perm(SEE_LETTERS)
        else []
    )
    wanted = needs_of(request, rows, dead, servers, quick_parts(now), now)
    listed = with_curves(settings_listing(request, rows), now)
    most = MOST_OF_ALL if request.GET.get("needs") == "all" else MOST
    return page(
        request,
        "ma_site/overview.html",
        title=_("Overview"),
        section="overview",
        listing=listed,
        every=len(rows),
        more_rows=len(listed.found) - len(listed.rows),
        needs=wanted[:most],
        more_needs=max(0, len(wanted) - most),
        servers=servers,
        silent=sum(1 for row in servers if row.expected and row.server.state(now) is ServerState.SILENT),
        alive=sum(1 for row in servers if row.server.state(now) is ServerState.ALIVE),
        on=sum(1 for row in rows if row.setting.enabled),
        off={kind: _count(rows, kind) for kind in OFF},
        alerts=open_alerts_badge(request) if request.user.has_perm(SEE_ALERTS) else "",
        dead=_dead_total(dead, request, now),
        latest=_latest(request),
        waiting=number_waiting(request),
        may_add=may_anywhere(request.user, "add"),
        tour=_tour(request.user),
        curves=None if refreshes_another(request, CURVES) else installation_charts(request, now),
    )


# Entries of the navigation, with what there is to do in the demo.
TOUR = (
    ("dead_letters", gettext_lazy("Dead letters"), gettext_lazy("read why a message failed, then replay it")),
    (
        "fingerprints",
        gettext_lazy("Error groups"),
        gettext_lazy("view identical failures as one group, and assign it to yourself"),
    ),
    ("settings", gettext_lazy("Launch settings"), gettext_lazy("enable and disable agents")),
    ("health", gettext_lazy("Health"), gettext_lazy("check every component")),
)


def _tour(user: Any) -> list[tuple[str, Text, Text]]:
    """Where to begin, for a site whose servers offer the agents of the demo; else nothing."""
    offered = OfferedAgent.objects.filter(name__startswith=DEMO_PREFIX, server__pools__name=DEMO_POOL)
    if not offered.exists():
        return []
    seen = {tab.section: tab.url for tab in all_tabs(navigation_for(user))}
    return [(seen[section], label, text) for section, label, text in TOUR if section in seen]


def _dead_total(rows: list[QueueRow], request: HttpRequest, now: Any) -> dict[str, Any] | None:
    """The broker's counts added up, our index's where it does not tell (`known` False); None without the
    right."""
    if not request.user.has_perm(SEE_LETTERS):
        return None
    queues = [row.queue for row in rows]
    new = DeadLetter.objects.filter(queue__in=queues, state=LetterState.DEAD, seen_at__gte=now - NEW)
    return {
        "count": sum(row.indexed_count if row.exact is None else row.exact for row in rows),
        "known": all(row.exact is not None for row in rows),
        "new": counted(new),
    }


def _latest(request: HttpRequest) -> FailureProtocol | None:
    if not request.user.has_perm(SEE_PROTOCOLS):
        return None
    return (
        FailureProtocol.objects.order_by("-occurred_at", "-id").only("occurred_at", "exception_type").first()
    )


@require_safe
@needs(VIEW)
def setting_list(request: HttpRequest) -> HttpResponseBase:
    selection, now = Selection.of(request.GET), timezone.now()
    every = setting_rows(now, request.user)
    labels = {
        "on": _("healthy"),
        "problem": _("failing"),
        "off": pgettext("of several settings", "disabled"),
        "tripped": pgettext("of several settings", "disabled by the breaker"),
        "manual": pgettext("of several settings", "disabled manually"),
        "never": pgettext("of several settings", "never enabled"),
    }
    counts = {group: _count(every, group) for group in STATES}
    tabs = [
        (group, labels[group], counts[group], group == selection.state)
        for group in STATES
        if counts[group] or group == selection.state or group not in OFF
    ]
    listed = with_curves(settings_listing(request, every), now)
    return page(
        request,
        "ma_site/settings.html",
        title=_("Settings"),
        section="settings",
        listing=listed,
        pages=listed.pages,
        kept=listed.kept,
        tabs=tabs,
        tab_kept=address_of(request.GET, "state", NUMBER),
        every=len(every),
        chosen=selection.state,
        selection=selection,
        cleared=urlencode({name: value for name in ("state", "sort") if (value := request.GET.get(name))}),
        narrowed=Selection.of({**request.GET.dict(), "state": ""}) != Selection(),
        pools=sorted({row.setting.pool.name for row in every}),
        destinations=sorted({row.destination for row in every} - {""}),
        bulk=bulk_links(request.user, selection),
        may_add=may_anywhere(request.user, "add"),
    )


def _count(rows: list[SettingRow], group: str) -> int:
    return sum(1 for row in rows if row.is_in(group))
