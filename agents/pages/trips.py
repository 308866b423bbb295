"""Trips: every time the breaker switched a setting off, what led to it, and what was done; pages and
words."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.http import require_safe

from agents.hooks import trip_takers
from agents.models import BreakerTrip, Interruption, LaunchSetting
from agents.pools.rights import may, why_not
from agents.provisioning.queue_counts import figures_of
from console.filters import ListFilter, NamesFilter, OneOfFilter, SpanFilter
from console.lists.keyset import keyset_page, list_page
from console.ui.amounts import number
from console.ui.page import StateLabel, link, needs, page, render_panels
from console.ui.text import masked
from contract.breaker import TripReason


def cause(reason: str, kind: str, same: int, every: int, servers: Sequence[str]) -> str:
    """`3 × KeyError in a row on srv-2, srv-3`."""
    facts = {"type": kind or _("unidentified"), "servers": ", ".join(servers) or "—"}
    if reason == TripReason.SAME_TYPE.value and same:
        text = ngettext(
            "%(n)s %(type)s failure on %(servers)s",
            "%(n)s consecutive %(type)s failures on %(servers)s",
            same,
        )
        return text % {**facts, "n": number(same)}
    if reason == TripReason.SAME_TYPE.value:
        return _("repeated %(type)s failures on %(servers)s") % facts
    if reason == TripReason.TRIAL.value:
        return _("the trial message failed (%(type)s) on %(servers)s") % facts
    if not every:
        return _("consecutive failures of several types on %(servers)s") % facts
    text = ngettext("%(n)s failure on %(servers)s", "%(n)s consecutive failures on %(servers)s", every)
    return text % {**facts, "n": number(every)}


def cause_of_trip(trip: BreakerTrip, interruptions: Sequence[Interruption] = ()) -> str:
    """Returns the cause with the number of failures that it took, by the latest of the interruptions (newest
    first) with the reason of the trip: a trip that was opened again also has those of the message that was
    tried first."""
    said = next((each for each in interruptions if each.effective and each.reason == trip.reason), None)
    same, every = (said.same_count, said.any_count) if said else (0, 0)
    kind = trip.exception_type or (said.same_type if said else "")
    return cause(trip.reason, kind, same, every, trip_servers(trip, interruptions))


def trip_servers(trip: BreakerTrip, interruptions: Sequence[Interruption] = ()) -> list[str]:
    """Returns who had given the setting up, as the trip keeps it; rows of interruptions serve where it does
    not."""
    kept = trip.quorum.get("interrupted") if isinstance(trip.quorum, dict) else None
    if isinstance(kept, list) and kept:
        return [str(name) for name in kept]
    return sorted({each.server.name for each in interruptions if each.effective})


def quorum_text(trip: BreakerTrip) -> str:
    """`2 of 2 servers that were needed`, from what the trip keeps."""
    quorum = trip.quorum if isinstance(trip.quorum, dict) else {}
    interrupted = quorum.get("interrupted")
    have = len(interrupted) if isinstance(interrupted, list) else 0
    needed = quorum.get("needed")
    if not isinstance(needed, int):
        return "—"
    text = ngettext("%(have)s of %(n)s required server", "%(have)s of %(n)s required servers", needed)
    return text % {"have": number(have), "n": number(needed)}


def others_text(trip: BreakerTrip) -> str:
    """Names the other servers that could have said otherwise, as the trip keeps them. One that was online and
    could not run it (cordoned, draining, stopped there, without the agent) is none of them."""
    others = trip.quorum.get("live") if isinstance(trip.quorum, dict) else None
    if not isinstance(others, list):
        return "—"
    return ", ".join(str(name) for name in others) or _("no servers that could run the setting")


@dataclass(frozen=True, slots=True)
class Done:
    """One thing that was done at a trip. `url` leads to what it was done to, where there is a page of it;
    `first`: with it begins what was done at one time."""

    text: str
    name: str
    url: str = ""
    first: bool = False


def effects(user: Any, trip: BreakerTrip) -> list[Done]:
    """Returns them in the order in which they were done, as this person may see them. A word that is not
    known here is shown as it is."""
    return [_done(effect) for effect in effects_for(user, trip)]


def _done(effect: dict[str, Any]) -> Done:
    what, name = str(effect.get("what", "")), str(effect.get("name", ""))
    text, page = _words().get(what, (what, ""))
    return Done(text, name, link(page, name) if page and name else "", what == "setting_disabled")


def _words() -> dict[str, tuple[str, str]]:
    """Returns by the code: what is said, and the page that shows the named thing."""
    return {
        "setting_disabled": (_("disabled setting"), "setting"),
        "member_disabled": (_("disabled group member"), "setting"),
        "group_disabled": (_("disabled group"), "group"),
        "run_unwanted": (_("stopped on server"), "server"),
        "run_stopped": (_("stopped on server"), "server"),
        "notice": (_("notified"), ""),
        "notice_created": (_("notified"), ""),
    }


def interruption_cause(interruption: Interruption) -> str:
    return cause(
        interruption.reason,
        interruption.same_type,
        interruption.same_count,
        interruption.any_count,
        [interruption.server.name],
    )


def effects_for(user: Any, trip: BreakerTrip) -> list[dict[str, Any]]:
    """Returns what was done, told notices among it. What is no list of objects is left out."""
    kept = [each for each in trip.effects if isinstance(each, dict)] if isinstance(trip.effects, list) else []
    if may(user, "edit", trip.setting):
        return kept
    return [each | {"name": masked(str(each.get("name", "")))} if "name" in each else each for each in kept]


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

OPEN = StateLabel(gettext_lazy("disabled"), "bad", "off")
ENDED = StateLabel(gettext_lazy("re-enabled"), "off", "ok")


def setting_keys() -> list[str]:
    return list(LaunchSetting.objects.order_by("key").values_list("key", flat=True))


class OfSettingFilter(NamesFilter):
    """Of one setting, by its key."""

    def __init__(self, names: Callable[[], Iterable[str]] = setting_keys, **options: Any) -> None:
        super().__init__(gettext_lazy("Setting"), names, **{"known_only": True, **options})

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
        [("open", gettext_lazy("still disabled")), ("ended", gettext_lazy("re-enabled"))],
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
        title=_("Breaker trips"),
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
        title=_("Breaker trip: %(key)s") % {"key": trip.setting.key},
        section="trips",
        crumbs=[(_("Breaker trips"), link("trips"))],
        trip=trip,
        state=trip_label(trip),
        trip_cause=cause_of_trip(trip, list(reversed(interruptions))),
        trip_quorum=quorum_text(trip),
        quorum=trip.quorum if isinstance(trip.quorum, dict) else {},
        others=others_text(trip),
        waiting=_waiting(trip),
        story=trip_story(trip, told, request.user),
        interruptions=told,
        heads=render_panels("trip_head", request, trip),
        panels=render_panels("trip", request, trip),
        side_panels=render_panels("trip_side", request, trip),
        why_not_enable=why_not(request.user, "enable", trip.setting),
    )


def _waiting(trip: BreakerTrip) -> int | None:
    """Returns how many messages wait for the setting that is still off, as the broker counts them; None: not
    known."""
    if trip.ended_at is not None or not trip.setting.takes_messages:
        return None
    figures = figures_of(trip.setting)
    return None if figures.waiting is None else figures.waiting + (figures.delayed or 0)
