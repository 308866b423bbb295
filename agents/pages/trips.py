"""Trips: every time the breaker switched a setting off, what led to it, and what was done."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_safe

from agents.hooks import trip_takers
from agents.models import BreakerTrip, Interruption, LaunchSetting
from agents.pages.trip_words import Done, cause_of_trip, effects, interruption_cause, quorum_text
from agents.pools.rights import why_not
from console.filters import ListFilter, OneOfFilter, SpanFilter
from console.lists.keyset import keyset_page, list_page
from console.ui import panels
from console.ui.labels import StateLabel
from console.ui.page import link, needs, page

# -- occurrences of a trip: each time the setting went off, by whom, and what was done then ------------------


Told = tuple[Interruption, str]


@dataclass(frozen=True, slots=True)
class Chapter:
    """`at`: None where nothing is left that tells when it went off again."""

    given_up: list[Told]
    at: datetime | None
    effects: list[Done]


def trip_story(trip: BreakerTrip, told: Sequence[Told], user: Any) -> list[Chapter]:
    """`told`: interruptions, oldest first, with their causes. The first chapter is the trip itself; each one
    after it is a message that was tried first and failed, which belongs to an activation of its own. Where
    the oldest interruptions are missing, the newest chapters keep theirs."""
    own = [(each, why) for each, why in told if each.trip_id == trip.pk]
    activations = list(dict.fromkeys(each.activation_uuid for each, _ in own))
    done = _batches(effects(user, trip), trip.reopened + 1)
    skipped = len(done) - len(activations)
    found: list[list[Told]] = [[] for _ in done]
    for each, why in own:
        found[max(0, skipped + activations.index(each.activation_uuid))].append((each, why))
    return [
        Chapter(given_up, trip.at if place == 0 else _last(given_up), batch)
        for place, (given_up, batch) in enumerate(zip(found, done, strict=True))
    ]


def _batches(done: Sequence[Done], count: int) -> list[list[Done]]:
    """What was done is kept in one row after the other; the setting itself is the first of each time."""
    batches: list[list[Done]] = [[] for _ in range(count)]
    place = -1
    for each in done:
        place += each.first
        batches[min(max(place, 0), count - 1)].append(each)
    return batches


def _last(given_up: Sequence[Told]) -> datetime | None:
    return max((each.received_at for each, _ in given_up), default=None)


VIEW = "agents.view_breakertrip"
MOST_ROWS = 100

OPEN = StateLabel(gettext_lazy("off"), "bad", "off")
ENDED = StateLabel(gettext_lazy("switched on again"), "off", "ok")


def setting_choices() -> list[tuple[str, str]]:
    return [(key, key) for key in LaunchSetting.objects.values_list("key", flat=True)]


class OfSettingFilter(OneOfFilter):
    """Of one setting, by its key."""

    def __init__(self, choices: Any = setting_choices, **options: Any) -> None:
        super().__init__(gettext_lazy("Setting"), choices, **options)

    def filter(self, rows: QuerySet[Any], value: str) -> QuerySet[Any]:
        """The id first: joined by key, PostgreSQL would not read the index in its order. 0 is nobody's."""
        if not value:
            return rows
        number = LaunchSetting.objects.filter(key=value).values_list("pk", flat=True).first()
        return rows.filter(setting=number or 0)


class TripFilter(ListFilter):
    setting = OfSettingFilter()
    state = OneOfFilter(
        gettext_lazy("State"),
        [("open", gettext_lazy("still off")), ("ended", gettext_lazy("switched on again"))],
        method="in_state",
    )
    span = SpanFilter(field_name="at")

    def in_state(self, rows: QuerySet[BreakerTrip], name: str, value: str) -> QuerySet[BreakerTrip]:
        return rows.filter(ended_at__isnull=value == "open")


@require_safe
@needs(VIEW)
def trip_list(request: HttpRequest) -> HttpResponseBase:
    rows = BreakerTrip.objects.select_related("setting", "group", "ended_by").order_by("-at", "-id")
    filters = TripFilter(request.GET, rows.prefetch_related("interruptions__server"))
    listed = keyset_page(request, filters.qs, "at")
    takers = {trip: name for found in trip_takers(request, listed.rows) for trip, name in found.items()}
    return list_page(
        request,
        "agents/trips.html",
        title=_("Trips"),
        section="trips",
        filters=filters,
        listed=listed,
        rows=[
            (
                trip,
                trip_label(trip),
                cause_of_trip(trip, list(trip.interruptions.all())),
                takers.get(trip.pk, ""),
            )
            for trip in listed.rows
        ],
    )


def trip_label(trip: BreakerTrip) -> StateLabel:
    return OPEN if trip.ended_at is None else ENDED


@require_safe
@needs(VIEW)
def trip_page(request: HttpRequest, pk: int) -> HttpResponseBase:
    rows = BreakerTrip.objects.select_related("setting", "group", "ended_by", "activation")
    trip = get_object_or_404(rows, pk=pk)
    interruptions = list(trip.interruptions.select_related("server").order_by("received_at")[:MOST_ROWS])
    told = [(each, interruption_cause(each)) for each in interruptions]
    return page(
        request,
        "agents/trip.html",
        title=_("Trip of %(key)s") % {"key": trip.setting.key},
        section="trips",
        crumbs=[(_("Trips"), link("trips"))],
        trip=trip,
        state=trip_label(trip),
        trip_cause=cause_of_trip(trip, list(reversed(interruptions))),
        trip_quorum=quorum_text(trip),
        quorum=trip.quorum if isinstance(trip.quorum, dict) else {},
        story=trip_story(trip, told, request.user),
        interruptions=told,
        panels=panels.render("trip", request, trip),
        side_panels=panels.render("trip_side", request, trip),
        why_not_enable=why_not(request.user, "enable", trip.setting),
    )
