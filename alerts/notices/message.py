"""A notification as facts and words, made of rows, without bodies of messages and without secrets."""

from datetime import datetime
from typing import Any

from django.conf import settings
from django.utils import translation
from django.utils.translation import gettext as _

from agents.models import BreakerTrip
from alerts import text as alerts_text
from alerts.models import AlertTransition, Event, Notice
from alerts.notices.channels.request import (
    ALERT_EVENTS,
    BAD,
    EVENTS,
    INFO,
    TEST,
    TRIP_ENDED,
    TRIPPED,
    Message,
    house,
    severity_of_event,
)


def message_of(notice: Notice) -> Message:
    """In the language of the installation: an address has no language of its own."""
    with translation.override(settings.LANGUAGE_CODE):
        if notice.transition is not None:
            return _of_transition(notice, notice.transition)
        if notice.trip is not None:
            return _of_trip(notice, notice.trip)
        return _of_event(notice, notice.event) if notice.event is not None else _of_test(notice)


def name_of(notice: Notice) -> str:
    """Returns the name of its event."""
    if notice.transition is not None:
        return ALERT_EVENTS.get(notice.transition.step, f"alert.{notice.transition.step}")
    if notice.trip is not None:
        return TRIP_ENDED if notice.over else TRIPPED
    return EVENTS[notice.event.kind] if notice.event is not None else TEST


def _of_transition(notice: Notice, row: AlertTransition) -> Message:
    alert, (title, text) = row.alert, alerts_text.alert_email(row)
    body = alerts_text.alert_webhook_body(row)
    return Message(
        id=f"alert_{row.pk}_{_unix(row.at)}",
        event=name_of(notice),
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
        event=name_of(notice),
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
        event=name_of(notice),
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
        event=name_of(notice),
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
