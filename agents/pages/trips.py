"""Trips: every time the breaker switched a setting off, what led to it, and what was done."""

import django_filters
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_safe

from agents.models import BreakerTrip, LaunchSetting, NoticeState
from agents.pages.breaker import interruption_cause
from agents.pages.trip_story import trip_story
from agents.pages.trip_words import quorum_text, trip_cause
from agents.services.notices import untold
from agents.services.rights import why_not
from agents.services.seen_addresses import address_of_notice
from console.filters import SpanFilter
from console.lists.keyset import keyset_page
from console.ui import panels
from console.ui.labels import Shown
from console.ui.page import link, needs, page

VIEW = "agents.view_breakertrip"
MOST_ROWS = 100

OPEN = Shown(gettext_lazy("off"), "bad", "off")
ENDED = Shown(gettext_lazy("switched on again"), "off", "ok")
NOTICES: dict[str, Shown] = {
    NoticeState.PENDING: Shown(NoticeState.PENDING.label, "info", "wait"),
    NoticeState.SENT: Shown(NoticeState.SENT.label, "ok", "ok"),
    NoticeState.FAILED: Shown(NoticeState.FAILED.label, "bad", "bad"),
}


def setting_choices() -> list[tuple[str, str]]:
    return [(key, key) for key in LaunchSetting.objects.values_list("key", flat=True)]


def setting_id(key: str) -> int:
    """The id first: joined by key, PostgreSQL would not read the index in its order. 0 is nobody's."""
    return LaunchSetting.objects.filter(key=key).values_list("pk", flat=True).first() or 0


class TripFilter(django_filters.FilterSet):
    setting = django_filters.ChoiceFilter(
        choices=setting_choices,
        label=gettext_lazy("Setting"),
        empty_label=gettext_lazy("all"),
        method="of_setting",
    )
    state = django_filters.ChoiceFilter(
        choices=[("open", gettext_lazy("still off")), ("ended", gettext_lazy("switched on again"))],
        label=gettext_lazy("State"),
        empty_label=gettext_lazy("all"),
        method="in_state",
    )
    span = SpanFilter(field_name="at")
    quiet = ()

    class Meta:
        model = BreakerTrip
        fields: list[str] = []

    def of_setting(self, rows: QuerySet[BreakerTrip], name: str, value: str) -> QuerySet[BreakerTrip]:
        return rows.filter(setting=setting_id(value))

    def in_state(self, rows: QuerySet[BreakerTrip], name: str, value: str) -> QuerySet[BreakerTrip]:
        return rows.filter(ended_at__isnull=value == "open")


@require_safe
@needs(VIEW)
def trip_list(request: HttpRequest) -> HttpResponseBase:
    rows = BreakerTrip.objects.select_related("setting", "group", "ended_by").order_by("-at", "-id")
    filters = TripFilter(request.GET, rows.prefetch_related("interruptions__server"))
    listed = keyset_page(request, filters.qs, "at")
    takers = panels.takers_of(request, listed.rows)
    return page(
        request,
        "agents/trips.html",
        title=_("Trips"),
        section="trips",
        filters=filters,
        filtered=any(value for name, value in request.GET.items() if name in filters.filters),
        listed=listed,
        rows=[
            (trip, shown(trip), trip_cause(trip, list(trip.interruptions.all())), takers.get(trip.pk, ""))
            for trip in listed.rows
        ],
        told="",
    )


def shown(trip: BreakerTrip) -> Shown:
    return OPEN if trip.ended_at is None else ENDED


@require_safe
@needs(VIEW)
def trip_page(request: HttpRequest, pk: int) -> HttpResponseBase:
    rows = BreakerTrip.objects.select_related("setting", "group", "ended_by", "activation")
    trip = get_object_or_404(rows, pk=pk)
    interruptions = list(trip.interruptions.select_related("server").order_by("received_at")[:MOST_ROWS])
    told = [(each, interruption_cause(each)) for each in interruptions]
    notices = trip.notices.select_related("target__setting").order_by("pk")[:MOST_ROWS]
    return page(
        request,
        "agents/trip.html",
        title=_("Trip of %(key)s") % {"key": trip.setting.key},
        section="trips",
        crumbs=[(_("Trips"), link("trips"))],
        trip=trip,
        state=shown(trip),
        trip_cause=trip_cause(trip, list(reversed(interruptions))),
        trip_quorum=quorum_text(trip),
        quorum=trip.quorum if isinstance(trip.quorum, dict) else {},
        story=trip_story(trip, told, request.user),
        interruptions=told,
        notices=[
            (notice, address_of_notice(request.user, notice, trip.setting), NOTICES[notice.state])
            for notice in notices
        ],
        untold=len(untold(trip)),
        panels=panels.render("trip", request, trip),
        why_not_enable=why_not(request.user, "enable", trip.setting),
    )
