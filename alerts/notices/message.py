"""A notification as facts and words, before any channel gives it its form: made of rows, without bodies of
messages and without secrets."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.utils import translation
from django.utils.translation import gettext as _

from agents.models import BreakerTrip
from alerts import text as alerts_text
from alerts.models import AlertTransition, Event, EventKind, LeastSeverity, Notice
from alerts.rules import AlertStep

INFO, WARNING, BAD = LeastSeverity.EVERYTHING, LeastSeverity.WARNING, LeastSeverity.BAD
ALERT_EVENTS = {
    AlertStep.OPENED.value: "alert.opened",
    AlertStep.REPEATED.value: "alert.repeated",
    AlertStep.REOPENED.value: "alert.opened",
    AlertStep.CLOSED.value: "alert.resolved",
}
EVENTS = {
    EventKind.ENABLED.value: "setting.enabled",
    EventKind.DISABLED.value: "setting.disabled",
    EventKind.REPLAY_ENDED.value: "replay.ended",
    EventKind.DEAD_LETTERS.value: "dead_letters.first",
}
TRIPPED, TRIP_ENDED, TEST = "setting.tripped", "setting.trip_ended", "test"
# Names of events, as Standard Webhooks carry them.
EVERY_EVENT = (*sorted({*ALERT_EVENTS.values(), *EVENTS.values()}), TRIPPED, TRIP_ENDED, TEST)


@dataclass(frozen=True, slots=True)
class Message:
    """`id`: the same in each repetition of this notification. `cause`: the same in what opens, repeats and
    resolves one alert or trip. `over`: it resolves it. `labels`: names by which Alertmanager knows it.
    `data`: the same facts for programs."""

    id: str
    event: str
    cause: str
    severity: int
    title: str
    lines: tuple[str, ...]
    link: str
    began_at: datetime
    at: datetime
    over: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)
    data: Mapping[str, Any] = field(default_factory=dict)


def message_of(notice: Notice) -> Message:
    """In the language of the installation: an address has no language of its own."""
    with translation.override(settings.LANGUAGE_CODE):
        if notice.transition is not None:
            return _of_transition(notice, notice.transition)
        if notice.trip is not None:
            return _of_trip(notice, notice.trip)
        return _of_event(notice, notice.event) if notice.event is not None else _of_test(notice)


def _of_transition(notice: Notice, row: AlertTransition) -> Message:
    alert, (title, text) = row.alert, alerts_text.alert_email(row)
    body = alerts_text.alert_webhook_body(row)
    return Message(
        id=f"alert_{row.pk}_{_unix(row.at)}",
        event=ALERT_EVENTS.get(row.step, f"alert.{row.step}"),
        cause=f"alert-{alert.pk}-{_unix(alert.opened_at or row.at)}",
        severity=alert.severity,
        title=title,
        lines=_lines(text),
        link=body["link"],
        began_at=alert.opened_at or row.at,
        at=row.at,
        over=notice.over,
        labels=notice.labels,
        data={name: value for name, value in body.items() if name not in ("version", "event")},
    )


def _of_trip(notice: Notice, trip: BreakerTrip) -> Message:
    ended = notice.over and trip.ended_at is not None
    subject, text = trip_email(trip)
    if notice.over:
        subject, text = _("Resolved: %(what)s") % {"what": subject}, ""
    return Message(
        id=f"trip_{trip.pk}_{_unix(trip.at)}_{notice.turn}_{'ended' if notice.over else 'open'}",
        event=TRIP_ENDED if notice.over else TRIPPED,
        cause=f"trip-{trip.pk}-{_unix(trip.at)}",
        severity=BAD,
        title=subject,
        lines=_lines(text),
        link=trip_link(trip),
        began_at=trip.at,
        at=trip.ended_at if ended and trip.ended_at else trip.at,
        over=notice.over,
        labels=notice.labels,
        data={**trip_facts(trip), "ended_at": trip.ended_at.isoformat() if trip.ended_at else None},
    )


def _of_event(notice: Notice, event: Event) -> Message:
    title = f"{event.get_kind_display()}: {event.setting_key}"
    return Message(
        id=f"event_{event.pk.hex}",
        event=EVENTS[event.kind],
        cause=f"event-{event.pk.hex}",
        severity=severity_of_event(event),
        title=title,
        lines=(),
        link=f"{settings.MA_BASE_URL}/settings/{event.setting_key}/",
        began_at=event.at,
        at=event.at,
        labels=notice.labels,
        data={"setting": event.setting_key, "at": event.at.isoformat(), **event.facts},
    )


def _of_test(notice: Notice) -> Message:
    subject, text = test_email()
    setting = notice.target.setting if notice.target else None
    return Message(
        id=f"test_{notice.pk}_{_unix(notice.created_at)}",
        event=TEST,
        cause=f"test-{notice.pk}-{_unix(notice.created_at)}",
        severity=INFO,
        title=subject,
        lines=_lines(text),
        link=settings.MA_BASE_URL,
        began_at=notice.created_at,
        at=notice.created_at,
        labels={"alertname": "ma_test", "severity": "info", "ma": house()},
        data={"setting": setting.key if setting else None, "link": settings.MA_BASE_URL},
    )


def severity_of_event(event: Event) -> int:
    bad = event.kind == EventKind.DEAD_LETTERS or event.facts.get("state") in ("failed", "stopped")
    return WARNING if bad else INFO


# -- labels, frozen when the notification is made ------------------------------------------------------------


def labels_of_alert(row: AlertTransition) -> dict[str, str]:
    alert = row.alert
    named = {
        "alertname": f"ma_{alert.kind}",
        "severity": "critical" if alert.severity >= BAD else "warning",
        "subject": alerts_text.one_line(alert.subject),
        "setting": alert.setting.key if alert.setting else "",
        "server": alert.server.name if alert.server else "",
        "pool": ",".join(sorted(pool.name for pool in alert.pools.all())),
        "ma": house(),
    }
    return {name: value for name, value in named.items() if value}


def labels_of_trip(trip: BreakerTrip) -> dict[str, str]:
    return {
        "alertname": "ma_breaker_trip",
        "severity": "critical",
        "setting": trip.setting.key,
        "pool": trip.setting.pool.name,
        "ma": house(),
    }


def house() -> str:
    """Names this installation, where several send to one place."""
    return urlsplit(settings.MA_BASE_URL).netloc or "ma"


# -- words of a trip and of a test ---------------------------------------------------------------------------


def email_of(notice: Notice) -> tuple[str, str]:
    """Returns subject and text."""
    with translation.override(settings.LANGUAGE_CODE):
        if notice.transition is not None:
            return alerts_text.alert_email(notice.transition)
        return test_email() if notice.trip is None else trip_email(notice.trip)


def test_email() -> tuple[str, str]:
    text = _(
        "This is a test notification requested on %(site)s. Notifications about breaker trips "
        "are sent to this address."
    )
    return _("Test notification"), text % {"site": settings.MA_BASE_URL}


def trip_email(trip: BreakerTrip) -> tuple[str, str]:
    lines = [
        _("The breaker disabled the setting “%(key)s”.") % {"key": trip.setting.key},
        "",
        _("Reason: %(reason)s") % {"reason": trip.get_reason_display()},
        _("Exception type: %(type)s") % {"type": trip.exception_type or "—"},
        _("Servers: %(names)s") % {"names": ", ".join(trip.quorum.get("interrupted", ())) or "—"},
        _("Time: %(at)s") % {"at": trip.at.isoformat(timespec="seconds")},
    ]
    if trip.group is not None:
        lines.append(_("Group also disabled: %(group)s") % {"group": trip.group.name})
    waits = _("Messages wait in the subscription until someone re-enables the setting.")
    lines += ["", *([waits] if trip.setting.takes_messages else []), trip_link(trip)]
    return _("Disabled: %(key)s") % {"key": trip.setting.key}, "\n".join(lines)


def trip_facts(trip: BreakerTrip) -> dict[str, Any]:
    return {
        "setting": trip.setting.key,
        "group": trip.group.name if trip.group else None,
        "trip": trip.pk,
        "at": trip.at.isoformat(),
        "reason": trip.reason,
        "exception_type": trip.exception_type,
        "servers": list(trip.quorum.get("interrupted", ())),
        "link": trip_link(trip),
    }


def trip_link(trip: BreakerTrip) -> str:
    return f"{settings.MA_BASE_URL}/trips/{trip.pk}/"


def _lines(text: str) -> tuple[str, ...]:
    """Each on one line, without addresses: channels have the link as a button."""
    kept = (alerts_text.one_line(line) for line in text.splitlines())
    return tuple(line for line in kept if line and "://" not in line)


def _unix(at: datetime) -> int:
    return int(at.timestamp())
