"""Describes what a notice says, and how it leaves: e-mail, or the body of a webhook. No bodies of messages,
no secrets."""

import hashlib
import hmac
import json
import re
import smtplib
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import requests
from django.conf import settings
from django.core.mail import EmailMessage
from django.utils import translation
from django.utils.translation import gettext as _
from requests.utils import requote_uri

from agents.models import BreakerTrip
from alerts import text as alerts_text
from alerts.models import Channel, Notice
from console.ui.text import masked

# -- A JSON body to an address that somebody chose, signed with a secret that both know ----------------------
# The address may be private: an operator names it, on purpose. Redirects are not followed: the secret's
# signature and the body belong to that address only.


# The time of who waits for it belongs to all other addresses as well.
CONNECT_SECONDS = 3.0
ANSWER_SECONDS = 5.0
SIGNATURE_VERSION = "v1"
# "Max retries exceeded with url: /hook?key=…".
BY_URLLIB3 = re.compile(r"(with url:) \S+")


class Undelivered(Exception):
    """Nobody took it, or it is not known whether somebody did: tried again later. The text is for people."""


def sign(secret: str, timestamp: str, body: bytes) -> str:
    """HMAC-SHA256 in hex over the timestamp, a point, and the body, as docs/operations.md tells receivers."""
    return hmac.new(secret.encode(), timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()


def headers_of(secret: str, event: str, body: bytes, now: datetime) -> dict[str, str]:
    timestamp = str(int(now.timestamp()))
    return {
        "Content-Type": "application/json",
        "User-Agent": "MA",
        "MA-Event": event,
        "MA-Timestamp": timestamp,
        "MA-Signature": f"{SIGNATURE_VERSION}={sign(secret, timestamp, body)}",
    }


def _told(error: Exception, url: str) -> str:
    """Leaves out path and query of the address, which are secrets as a rule: the text is shown to
    everybody."""
    text = str(error)
    for whole in (url, requote_uri(url)):
        text = text.replace(whole, masked(url))
    text = BY_URLLIB3.sub(r"\1 /…", text)
    return f"{type(error).__name__}: {text}"


def post(url: str, secret: str, content: Mapping[str, Any], now: datetime) -> None:
    """Returns when the address answered 2xx. Raises Undelivered."""
    body = json.dumps(content, ensure_ascii=False, sort_keys=True).encode()
    headers = headers_of(secret, str(content.get("event", "")), body, now)
    try:
        # What it answers is not read: only the status counts.
        with requests.post(
            url,
            data=body,
            headers=headers,
            timeout=(CONNECT_SECONDS, ANSWER_SECONDS),
            allow_redirects=False,
            stream=True,
        ) as answer:
            status = answer.status_code
    except (requests.RequestException, OSError, ValueError) as error:
        raise Undelivered(_told(error, url)[:500]) from error
    if 300 <= status < 400:
        raise Undelivered(f"answered {status}: redirects are not followed, name the final address")
    if not 200 <= status < 300:
        raise Undelivered(f"answered {status}")


VERSION = 1
TRIP, TEST = "trip", "test"


def deliver(notice: Notice, now: datetime) -> None:
    """Once. Raises Undelivered."""
    if notice.target is None:
        raise Undelivered("its target was removed")
    if notice.channel == Channel.WEBHOOK:
        post(notice.address, notice.target.secret, webhook_of(notice), now)
        return
    if not settings.MA_EMAIL_READY:
        raise Undelivered("MA_EMAIL_URL is not set")
    subject, text = email_of(notice)
    try:
        EmailMessage(subject, text, to=[notice.address]).send()
    except (smtplib.SMTPException, OSError, ValueError) as error:
        raise Undelivered(f"{type(error).__name__}: {error}"[:500]) from error


def webhook_of(notice: Notice) -> dict[str, Any]:
    """The body of a webhook. `trip`, or `transition`, is the same in each repetition: a receiver that knows
    it has nothing to do."""
    if notice.transition is not None:
        return alerts_text.alert_webhook_body(notice.transition)
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


def email_of(notice: Notice) -> tuple[str, str]:
    """(subject, text) in the language of the installation: an address has no language of its own."""
    with translation.override(settings.LANGUAGE_CODE):
        if notice.transition is not None:
            return alerts_text.alert_email(notice.transition)
        return _test_email() if notice.trip is None else _trip_email(notice.trip)


def _test_email() -> tuple[str, str]:
    text = _("Somebody asked %(site)s to try whether notices of trips reach this address. They do.")
    return _("Test of a notice"), text % {"site": settings.MA_BASE_URL}


def _trip_email(trip: BreakerTrip) -> tuple[str, str]:
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
