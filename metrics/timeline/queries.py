"""Kinds of events of the apps below, and those that a person may see."""

from datetime import datetime
from typing import Any

from django.db.models import Exists, OuterRef, QuerySet
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from agents.models import BreakerTrip, Duty, Interruption, StateChange
from console.ui.charts.curves import Mark, Shape
from console.ui.page import link
from dlq.models import ReplayJob
from dlq.rights import SEE_REPLAYS
from metrics import hooks
from metrics.timeline.events import EventKind, Subject, Window, newest_events

# On one chart; more are a list.
MOST_MARKS = 200


def event_kinds(user: Any) -> list[EventKind]:
    """Those that this person may see, in their order."""
    return [kind for kind in (*KINDS, *hooks.event_kinds()) if user.has_perm(kind.permission)]


def marks_of(user: Any, subject: Subject, start: datetime, end: datetime) -> list[Mark]:
    """The newest of all kinds that this person may see, to lie above a curve."""
    kinds = event_kinds(user)
    names = {kind.name for kind in kinds}
    return [event.mark for event in newest_events(kinds, names, subject, Window(start, end, MOST_MARKS))]


# -- trips ---------------------------------------------------------------------------------------------------


def _trips(subject: Subject) -> QuerySet[Any]:
    rows = BreakerTrip.objects.all()
    if subject.setting is not None:
        rows = rows.filter(setting=subject.setting)
    if subject.server is not None:
        there = Interruption.objects.filter(trip=OuterRef("pk"), server=subject.server)
        rows = rows.filter(Exists(there))
    return rows


def _trip(trip: BreakerTrip) -> Mark:
    return Mark(trip.at, Shape.DOWN, "bad", _("Trip"), trip.setting.key, link("trip", trip.pk))


# -- transitions of the history ------------------------------------------------------------------------------


_OF_A_CHANGE = ("what", "old", "new", "reason", "at", "setting__key", "server__name")


def _changes(what: str, subject: Subject, **narrowed: Any) -> QuerySet[Any]:
    rows = StateChange.objects.filter(what=what, **narrowed)
    if subject.setting is not None:
        rows = rows.filter(setting=subject.setting)
    return rows if subject.server is None else rows.filter(server=subject.server)


def _switches(subject: Subject) -> QuerySet[Any] | None:
    """Of a server: what was stopped and started there."""
    whole = subject.server is None
    return _changes("setting", subject, new__in=("enabled", "disabled")) if whole else None


def _switch(change: StateChange) -> Mark:
    key = change.setting.key if change.setting else ""
    url = link("setting", key) if key else ""
    if change.new == "enabled":
        return Mark(change.at, Shape.UP, "ok", _("Enabled"), key, url)
    return Mark(change.at, Shape.SQUARE, "warn", _("Disabled"), key, url)


def _stops(subject: Subject) -> QuerySet[Any]:
    return _changes("server_stop", subject)


def _stop(change: StateChange) -> Mark:
    key, server = change.setting.key if change.setting else "", change.server.name if change.server else ""
    url = link("setting", key) if key else ""
    if change.new == "started":
        return Mark(change.at, Shape.UP, "ok", _("Started on a server"), f"{key} · {server}", url)
    return Mark(change.at, Shape.SQUARE, "warn", _("Stopped on a server"), f"{key} · {server}", url)


def _duties(subject: Subject) -> QuerySet[Any] | None:
    return None if subject.setting is not None else _changes("server", subject)


def _duty(change: StateChange) -> Mark:
    words = {Duty.CORDONED: _("Cordoned"), Duty.DRAINING: _("Draining"), Duty.ACTIVE: _("In service")}
    server = change.server.name if change.server else ""
    tone = "ok" if change.new == Duty.ACTIVE else "warn"
    text = words.get(Duty(change.new)) if change.new in Duty else change.new
    return Mark(change.at, Shape.BAR, tone, text or "", server, link("server", server) if server else "")


def _versions(subject: Subject) -> QuerySet[Any]:
    """Of a setting: of its agent, on the servers of its pool."""
    if subject.setting is None:
        return _changes("version", subject)
    rows = _changes("version", Subject(server=subject.server), reason__params__agent=subject.setting.agent)
    return rows.filter(server__pools=subject.setting.pool_id)


def _version(change: StateChange) -> Mark:
    server = change.server.name if change.server else ""
    about = f"{change.reason} {change.old} → {change.new}, {server}"
    url = link("server", server) if server else ""
    return Mark(change.at, Shape.DIAMOND, "info", _("Version %(new)s") % {"new": change.new}, about, url)


# -- replays -------------------------------------------------------------------------------------------------


def _replays(subject: Subject) -> QuerySet[Any] | None:
    """They are of no server."""
    if subject.server is not None:
        return None
    rows = ReplayJob.objects.all()
    if subject.setting is not None:
        rows = rows.filter(setting_key=subject.setting.key)
    return rows


def _replay(job: ReplayJob) -> Mark:
    url = link("replay", job.pk)
    return Mark(
        job.created_at, Shape.RING, "third", str(capfirst(job.get_action_display())), job.setting_key, url
    )


def _of_a_change(name: str, label: Any, permission: str, look: tuple[Shape, str], *how: Any) -> EventKind:
    return EventKind(name, label, permission, StateChange, *look, "at", _OF_A_CHANGE, *how)


SEE_SETTINGS, SEE_SERVERS = "agents.view_launchsetting", "agents.view_server"
# Their order is that of what happened at one instant.
KINDS = (
    EventKind(
        "trip", gettext_lazy("Breaker trips"), "agents.view_breakertrip", BreakerTrip, Shape.DOWN, "bad",
        "at", ("at", "setting__key"), _trips, _trip,
    ),
    _of_a_change(
        "switch",
        gettext_lazy("Settings enabled or disabled"),
        SEE_SETTINGS,
        (Shape.UP, "ok"),
        _switches,
        _switch,
    ),
    _of_a_change(
        "stop",
        gettext_lazy("Stopped or started on one server"),
        SEE_SETTINGS,
        (Shape.SQUARE, "warn"),
        _stops,
        _stop,
    ),
    _of_a_change(
        "version", gettext_lazy("Versions"), SEE_SERVERS, (Shape.DIAMOND, "info"), _versions, _version
    ),
    _of_a_change(
        "duty", gettext_lazy("Cordons and drains"), SEE_SERVERS, (Shape.BAR, "warn"), _duties, _duty
    ),
    EventKind(
        "replay", gettext_lazy("Replays"), SEE_REPLAYS, ReplayJob, Shape.RING, "third",
        "created_at", ("created_at", "action", "setting_key"), _replays, _replay,
    ),
)  # fmt: skip
