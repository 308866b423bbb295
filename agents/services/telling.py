"""What a notice says, and how it leaves: e-mail, or the body of a webhook. No bodies of messages, no
secrets."""

import smtplib
from datetime import datetime
from typing import Any

from django.conf import settings
from django.core.mail import EmailMessage
from django.utils import translation
from django.utils.translation import gettext as _

from agents.alerts import words
from agents.models import BreakerTrip, Channel, Notice
from agents.services import webhook
from agents.services.webhook import Undelivered

VERSION = 1
TRIP, TEST = "trip", "test"


def deliver(notice: Notice, now: datetime) -> None:
    """Once. Raises Undelivered."""
    if notice.target is None:
        raise Undelivered("its target was removed")
    if notice.channel == Channel.WEBHOOK:
        webhook.post(notice.address, notice.target.secret, content_of(notice), now)
        return
    if not settings.MA_EMAIL_READY:
        raise Undelivered("MA_EMAIL_URL is not set")
    subject, text = letter_of(notice)
    try:
        EmailMessage(subject, text, to=[notice.address]).send()
    except (smtplib.SMTPException, OSError, ValueError) as error:
        raise Undelivered(f"{type(error).__name__}: {error}"[:500]) from error


def content_of(notice: Notice) -> dict[str, Any]:
    """The body of a webhook. `trip`, or `transition`, is the same in each repetition: a receiver that knows
    it has nothing to do."""
    if notice.transition is not None:
        return words.content_of(notice.transition)
    trip = notice.trip
    if trip is None:
        setting = notice.target.setting if notice.target else None
        return {
            "version": VERSION,
            "event": TEST,
            "setting": setting.key if setting else None,
            "at": notice.created_at.isoformat(),
            "link": settings.MA_BASE_URL,
        }
    return {
        "version": VERSION,
        "event": TRIP,
        "setting": trip.setting.key,
        "group": trip.group.name if trip.group else None,
        "trip": trip.pk,
        "at": trip.at.isoformat(),
        "reason": trip.reason,
        "exception_type": trip.exception_type,
        "servers": list(trip.quorum.get("interrupted", ())),
        "link": _link(trip),
    }


def letter_of(notice: Notice) -> tuple[str, str]:
    """(subject, text) in the language of the installation: an address has no language of its own."""
    with translation.override(settings.LANGUAGE_CODE):
        if notice.transition is not None:
            return words.letter_of(notice.transition)
        return _test_letter() if notice.trip is None else _trip_letter(notice.trip)


def _test_letter() -> tuple[str, str]:
    text = _("Somebody asked %(site)s to try whether notices of trips reach this address. They do.")
    return _("Test of a notice"), text % {"site": settings.MA_BASE_URL}


def _trip_letter(trip: BreakerTrip) -> tuple[str, str]:
    lines = [
        _("The breaker switched “%(key)s” off.") % {"key": trip.setting.key},
        "",
        _("Reason: %(reason)s") % {"reason": trip.get_reason_display()},
        _("Exception type: %(type)s") % {"type": trip.exception_type or "—"},
        _("Servers: %(names)s") % {"names": ", ".join(trip.quorum.get("interrupted", ())) or "—"},
        _("At: %(at)s") % {"at": trip.at.isoformat(timespec="seconds")},
    ]
    if trip.group is not None:
        lines.append(_("With it its whole group: %(group)s") % {"group": trip.group.name})
    waits = _("Its messages wait in its subscription until somebody switches it on again.")
    lines += ["", *([waits] if trip.setting.takes_messages else []), _link(trip)]
    return _("Switched off: %(key)s") % {"key": trip.setting.key}, "\n".join(lines)


def _link(trip: BreakerTrip) -> str:
    return f"{settings.MA_BASE_URL}/trips/{trip.pk}/"
