"""Telling people of a trip or of a transition of an alert, by e-mail or webhook: tried again until it
arrives or a day has passed. No bodies of messages, no secrets.

At least once: who is killed between the sending and the commit leaves a notice that is sent again. The id
of the trip or of the transition in it lets a receiver see that.
"""

import hashlib
import hmac
import json
import re
import smtplib
import time
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

import requests
import structlog
from django.conf import settings
from django.core.mail import EmailMessage
from django.db import transaction
from django.db.models import Exists, OuterRef
from django.utils import timezone, translation
from django.utils.translation import gettext as _
from requests.utils import requote_uri

from agents.models import BreakerTrip
from alerts import text as alerts_text
from alerts.models import Channel, Notice, NoticeState, NoticeTarget
from console.audit.log import Record, no_record
from console.processes import lock
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
    """HMAC-SHA256 in hex over the timestamp, a point, and the body, as docs/how-to/notices.md tells
    receivers."""
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
        raise Undelivered(f"answered {status}: redirects are not followed: enter the final address")
    if not 200 <= status < 300:
        raise Undelivered(f"answered {status}")


VERSION = 1
TRIP, TEST = "trip", "test"


def deliver(notice: Notice, now: datetime) -> None:
    """Once. Raises Undelivered."""
    if notice.target is None:
        raise Undelivered("the target was deleted")
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
    text = _(
        "This is a test notification requested on %(site)s. Notifications about breaker trips "
        "are sent to this address."
    )
    return _("Test notification"), text % {"site": settings.MA_BASE_URL}


def _trip_email(trip: BreakerTrip) -> tuple[str, str]:
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
    lines += ["", *([waits] if trip.setting.takes_messages else []), _link(trip)]
    return _("Disabled: %(key)s") % {"key": trip.setting.key}, "\n".join(lines)


def _link(trip: BreakerTrip) -> str:
    return f"{settings.MA_BASE_URL}/trips/{trip.pk}/"


log = structlog.get_logger(__name__)

# After the first, second, … attempt. The one after the last pause is the last attempt, a little more than a
# day after the first: a mail server that was away for a day loses nothing.
PAUSES = tuple(timedelta(minutes=minutes) for minutes in (0.5, 2, 10, 30, 120, 360, 930))
MOST_ATTEMPTS = len(PAUSES) + 1
# Addresses that hang hold one worker for so long at a time, and never a second one.
BUDGET_SECONDS = 20.0
# More than the budget and a last attempt: a sender that was killed is followed then.
HELD_FOR = timedelta(seconds=60)


def send_due(now: datetime) -> int:
    """Returns how many arrived. Of several that call it at once one sends: what it leaves is found by the
    next call."""
    if not Notice.objects.filter(state=NoticeState.PENDING, next_at__lte=now).exists():
        return 0
    with lock("notices", HELD_FOR) as mine:
        return sum(_attempt(notice, now) for notice in _due(now)) if mine else 0


def _due(now: datetime) -> Iterator[Notice]:
    """One after the other, until the time is over. Addresses that did not answer come last, each once in a
    call."""
    deadline = time.monotonic() + BUDGET_SECONDS
    pending = Notice.objects.filter(state=NoticeState.PENDING)
    silent = pending.filter(
        channel=OuterRef("channel"), address=OuterRef("address"), next_at__gt=now, attempts__gt=0
    )
    due = (
        pending.filter(next_at__lte=now)
        .alias(silent=Exists(silent))
        .order_by("silent", "attempts", "next_at", "pk")
    )
    tried: set[str] = set()
    while time.monotonic() < deadline:
        notice = due.exclude(address__in=tried).select_related("target__setting").first()
        if notice is None:
            return
        yield notice
        if not Notice.objects.filter(pk=notice.pk, state=NoticeState.SENT).exists():
            tried.add(notice.address)


def send_test(target: NoticeTarget, by: object, now: datetime, record: Record = no_record) -> Notice:
    """Tried once and at once, so that the person sees how it went."""
    with transaction.atomic():
        record()
        notice = Notice.objects.create(
            target=target,
            channel=target.channel,
            address=target.address,
            # So nobody else takes it up, and a kill in between leaves what is true.
            state=NoticeState.FAILED,
            problem="not finished",
            attempts=1,
            next_at=now,
            created_at=now,
        )
    log.info("notice tested", target=target.pk, by=str(by))
    _deliver(notice, now, last=True)
    notice.refresh_from_db()
    return notice


def pause_after(attempts: int) -> timedelta:
    return PAUSES[min(attempts, len(PAUSES)) - 1]


def _attempt(notice: Notice, now: datetime) -> bool:
    """The claim moves `next_at` on before anything is sent: a kill costs a pause, never the notice."""
    attempts = notice.attempts + 1
    unclaimed = Notice.objects.filter(pk=notice.pk, state=NoticeState.PENDING, attempts=notice.attempts)
    if attempts > MOST_ATTEMPTS:
        unclaimed.update(state=NoticeState.FAILED)
        return False
    if unclaimed.update(attempts=attempts, next_at=now + pause_after(attempts)) != 1:
        return False
    return _deliver(notice, now, last=attempts == MOST_ATTEMPTS)


def _deliver(notice: Notice, now: datetime, *, last: bool) -> bool:
    row = Notice.objects.filter(pk=notice.pk).exclude(state=NoticeState.SENT)
    try:
        deliver(notice, now)
    except Undelivered as error:
        log.warning("notice not delivered", notice=notice.pk, channel=notice.channel, problem=str(error))
        row.update(problem=str(error), state=NoticeState.FAILED if last else NoticeState.PENDING)
        return False
    row.update(state=NoticeState.SENT, sent_at=timezone.now(), problem="")
    return True
