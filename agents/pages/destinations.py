"""Destinations: the list with their policies, and the page of one: what its policy means, what the broker
has, and which settings share it."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django.core.paginator import Paginator
from django.db.models import Count, Q, QuerySet
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_safe

from agents.activations.queries import open_runs
from agents.destinations.operations import DESTINATIONS, broker_side, policy_buttons
from agents.destinations.policies import KNOWN, policy_changes
from agents.destinations.redelivery import facts_of_policy, preview
from agents.models import Destination, FoundPolicy, LaunchSetting, ProvisionState
from agents.pages.states import facts_of, setting_label
from console.filters import ListFilter, TextFilter
from console.ui.page import Fact, StateLabel, link, needs, page, render_panels

VIEW, SEE_SETTINGS = "agents.view_destination", "agents.view_launchsetting"
ADD, CHANGE = "agents.add_destination", "agents.change_destination"
PAGE = 50
SHOWN_SETTINGS = 100
SHOWN_CHANGES = 5

IN_SYNC = StateLabel(gettext_lazy("in sync"), "ok", "ok")
DIFFERS = StateLabel(gettext_lazy("differs"), "warn", "warn")
UNREAD = StateLabel(gettext_lazy("not checked recently"), "off", "off")
FAILED = StateLabel(gettext_lazy("provisioning failed"), "bad", "bad")
NOT_CREATED = StateLabel(gettext_lazy("not created: no settings"), "off", "off")


class DestinationFilter(ListFilter):
    q = TextFilter(gettext_lazy("Address or description"), 200, method="with_text")

    def with_text(self, rows: QuerySet[Destination], name: str, text: str) -> QuerySet[Destination]:
        return rows.filter(Q(name__icontains=text) | Q(description__icontains=text))


@dataclass(frozen=True, slots=True)
class DestinationRow:
    """`since` when the broker differs."""

    destination: Destination
    policy: list[Fact]
    settings: int
    state: StateLabel
    since: datetime | None


def broker_state(found: FoundPolicy | None, settings: int, failed: int, now: datetime) -> StateLabel:
    """Returns what the rows say: the broker is not asked for a list."""
    if not settings:
        return NOT_CREATED
    if failed:
        return FAILED
    if found is None or found.seen_at <= now - KNOWN:
        return UNREAD
    return DIFFERS if found.differs_since else IN_SYNC


@require_safe
@needs(VIEW)
def destination_list(request: HttpRequest) -> HttpResponseBase:
    filters, now = DestinationFilter(request.GET, Destination.objects.order_by("name")), timezone.now()
    listed = Paginator(filters.qs, PAGE).get_page(request.GET.get("page"))
    return page(
        request,
        "agents/destinations.html",
        title=_("Destinations"),
        section="destinations",
        crumbs=[(_("Settings"), link("settings"))],
        filters=filters,
        filtered=filters.is_set,
        rows=_rows([each.pk for each in listed.object_list], now),
        pages=listed,
        kept=urlencode({"q": request.GET["q"]}) if request.GET.get("q") else "",
        may_add=request.user.has_perm(ADD),
    )


def _rows(keys: list[int], now: datetime) -> list[DestinationRow]:
    failed = Q(settings__provision_state=ProvisionState.FAILED)
    counts = {"with_it": Count("settings"), "failed": Count("settings", filter=failed)}
    rows: list[Any] = list(Destination.objects.filter(pk__in=keys).annotate(**counts).order_by("name"))
    policies = FoundPolicy.objects.filter(address__in=[row.name for row in rows])
    found = {each.address: each for each in policies}
    return [
        DestinationRow(
            destination=row,
            policy=facts_of_policy(row),
            settings=row.with_it,
            state=(state := broker_state(found.get(row.name), row.with_it, row.failed, now)),
            since=found[row.name].differs_since if state is DIFFERS else None,
        )
        for row in rows
    ]


@require_safe
@needs(VIEW)
def destination_page(request: HttpRequest, pk: int) -> HttpResponseBase:
    """The broker is asked, for a moment."""
    destination, now = get_object_or_404(Destination, pk=pk), timezone.now()
    side = broker_side(destination)
    (row,) = _rows([pk], now)
    return page(
        request,
        "agents/destination.html",
        title=destination.name,
        section="destinations",
        crumbs=DESTINATIONS.crumbs(destination)[:-1],
        destination=destination,
        row=row,
        preview=preview(destination),
        broker=side,
        buttons=policy_buttons(request.user, destination, side),
        policy_changes=policy_changes(destination, SHOWN_CHANGES),
        sees_settings=request.user.has_perm(SEE_SETTINGS),
        settings=_settings(destination, now) if request.user.has_perm(SEE_SETTINGS) else [],
        more_settings=max(0, row.settings - SHOWN_SETTINGS),
        may_change=request.user.has_perm(CHANGE),
        panels=render_panels("destination", request, destination),
    )


def _settings(destination: Destination, now: datetime) -> list[tuple[LaunchSetting, StateLabel]]:
    rows = LaunchSetting.objects.filter(destination=destination).select_related("pool", "destination")
    shown = list(rows.order_by("key")[:SHOWN_SETTINGS])
    keys = [each.pk for each in shown]
    runs, facts = open_runs(keys), facts_of(keys)
    return [(each, setting_label(each, runs.get(each.pk, []), now, facts[each.pk])) for each in shown]
