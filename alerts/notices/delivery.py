"""Sends notifications from their rows: tried again until they arrive or a day has passed. No bodies of
messages, no secrets.

At least once: who is killed between the sending and the commit leaves a notice that is sent again, under the
same id, by which a receiver sees that.
"""

import smtplib
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import structlog
from django.conf import settings
from django.core.mail import EmailMessage
from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from alerts.models import AlertState, Channel, Notice, NoticeState, NoticeTarget
from alerts.notices.channels import FORMS, INCIDENTS
from alerts.notices.channels.incidents import REPEATED_EVERY
from alerts.notices.channels.request import Recipient
from alerts.notices.http import Undelivered, post
from alerts.notices.message import email_of, message_of
from alerts.notices.routing import Hours, Turn, Waiting, turn_of
from alerts.rules import SAME, AlertStep
from console.audit.log import Record, no_record
from console.processes import lock

log = structlog.get_logger(__name__)

# After the first, second, … attempt. The one after the last pause is the last attempt, a little more than a
# day after the first: a mail server that was away for a day loses nothing.
PAUSES = tuple(timedelta(minutes=minutes) for minutes in (0.5, 2, 10, 30, 120, 360, 930))
MOST_ATTEMPTS = len(PAUSES) + 1
# Addresses that hang hold one worker for so long at a time, and never a second one.
BUDGET_SECONDS = 20.0
# More than the budget and a last attempt: a sender that was killed is followed then.
HELD_FOR = timedelta(seconds=60)


def deliver(notice: Notice, now: datetime) -> None:
    """Once. Raises Undelivered."""
    if notice.target is None:
        raise Undelivered("the target was deleted")
    if notice.channel == Channel.EMAIL:
        _mail(notice)
        return
    to = Recipient(notice.address, notice.target.secret)
    for request in FORMS[notice.channel](message_of(notice), to, now):
        post(request, now)


def _mail(notice: Notice) -> None:
    if not settings.MA_EMAIL_READY:
        raise Undelivered("MA_EMAIL_URL is not set")
    subject, text = email_of(notice)
    try:
        EmailMessage(subject, text, to=[notice.address]).send()
    except (smtplib.SMTPException, OSError, ValueError) as error:
        raise Undelivered(f"{type(error).__name__}: {error}"[:500]) from error


# -- what is due ---------------------------------------------------------------------------------------------


def send_due(now: datetime) -> int:
    """Returns how many arrived. Of several that call it at once one sends: what it leaves is found by the
    next call."""
    states = (NoticeState.PENDING, NoticeState.ACTIVE)
    if not any(Notice.objects.filter(state=state, next_at__lte=now).exists() for state in states):
        return 0
    with lock("notices", HELD_FOR) as mine:
        return sum(_attempt(notice, now) for notice in _due(now)) if mine else 0


def _due(now: datetime) -> Iterator[Notice]:
    """One after the other, until the time is over. Addresses that did not answer come last, each once in a
    call; what is sent again to keep it open comes after what is new."""
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
    again = Notice.objects.filter(state=NoticeState.ACTIVE, next_at__lte=now).order_by("next_at", "pk")
    tried: set[str] = set()
    while time.monotonic() < deadline:
        notice = _first(due, tried) or _first(again, tried)
        if notice is None:
            return
        yield notice
        if Notice.objects.filter(pk=notice.pk).filter(~Q(problem="")).exists():
            tried.add(notice.address)


def _first(rows: QuerySet[Notice], tried: set[str]) -> Notice | None:
    rows = rows.exclude(address__in=tried)
    return rows.select_related("target__setting", "transition__alert", "trip", "event").first()


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
    if notice.state == NoticeState.ACTIVE:
        return _repeat(notice, now)
    attempts = notice.attempts + 1
    unclaimed = Notice.objects.filter(pk=notice.pk, state=NoticeState.PENDING, attempts=notice.attempts)
    if attempts > MOST_ATTEMPTS:
        unclaimed.update(state=NoticeState.FAILED)
        return False
    if not _its_turn(notice, unclaimed, now):
        return False
    if unclaimed.update(attempts=attempts, next_at=now + pause_after(attempts)) != 1:
        return False
    return _deliver(notice, now, last=attempts == MOST_ATTEMPTS)


def _repeat(notice: Notice, now: datetime) -> bool:
    """Keeps open at Alertmanager what is open. A repetition that is lost is followed by the next one."""
    active = Notice.objects.filter(pk=notice.pk, state=NoticeState.ACTIVE, next_at=notice.next_at)
    if notice.target is None or _has_ended(notice):
        active.update(state=NoticeState.SENT)
        return False
    if active.update(next_at=now + REPEATED_EVERY) != 1:
        return False
    return _deliver(notice, now, last=False)


def _deliver(notice: Notice, now: datetime, *, last: bool) -> bool:
    row = Notice.objects.filter(pk=notice.pk).exclude(state=NoticeState.SENT)
    try:
        deliver(notice, now)
    except Undelivered as error:
        log.warning("notice not delivered", notice=notice.pk, channel=notice.channel, problem=str(error))
        failed = NoticeState.FAILED if last else NoticeState.PENDING
        row.update(problem=str(error), state=notice.state if notice.state == NoticeState.ACTIVE else failed)
        _let_wait(notice, now + error.wait)
        return False
    row.update(sent_at=timezone.now(), problem="", **_sent(notice, now))
    if notice.over:
        _repetitions_before(notice).update(state=NoticeState.SENT)
    return True


def _sent(notice: Notice, now: datetime) -> dict[str, object]:
    """Returns what becomes of one that arrived."""
    keeps = notice.channel == Channel.ALERTMANAGER and not notice.over
    if keeps and (notice.transition is not None or notice.trip is not None):
        return {"state": NoticeState.ACTIVE, "next_at": now + REPEATED_EVERY}
    return {"state": NoticeState.SENT}


def _let_wait(notice: Notice, until: datetime) -> None:
    """The address asked for a pause: nothing goes there before."""
    rows = Notice.objects.filter(channel=notice.channel, address=notice.address, next_at__lt=until)
    rows.filter(state__in=(NoticeState.PENDING, NoticeState.ACTIVE)).update(next_at=until)


# -- causes that are over, and the hours of the target -------------------------------------------------------


def _has_ended(notice: Notice) -> bool:
    """Returns whether nothing keeps it open: its cause is over, and no notification of that is pending."""
    return (
        _cause_is_over(notice)
        and not _of_same_cause(notice, over=True).filter(state=NoticeState.PENDING).exists()
    )


def _cause_is_over(notice: Notice) -> bool:
    if notice.transition is not None:
        return notice.transition.alert.state == AlertState.CLOSED
    if notice.trip is not None:
        return notice.trip.ended_at is not None
    return False


def _is_over_for_good(notice: Notice, now: datetime) -> bool:
    """An alert that closed by itself a moment ago may come back, and nobody would be told of it anew."""
    if notice.transition is None or not _cause_is_over(notice):
        return _cause_is_over(notice)
    alert = notice.transition.alert
    return alert.by_hand or alert.closed_at is None or now - alert.closed_at >= SAME


def _of_same_cause(notice: Notice, *, over: bool) -> QuerySet[Notice]:
    """The others of its alert or its trip to the same target."""
    rows = Notice.objects.filter(target=notice.target_id, over=over).exclude(pk=notice.pk)
    if notice.transition is not None:
        return rows.filter(transition__alert=notice.transition.alert_id)
    return rows.filter(trip=notice.trip_id) if notice.trip_id is not None else rows.none()


def _repetitions_before(notice: Notice) -> QuerySet[Notice]:
    return _of_same_cause(notice, over=False).filter(state=NoticeState.ACTIVE)


def hours_of(target: NoticeTarget) -> Hours:
    zone = ZoneInfo(target.time_zone or settings.TIME_ZONE)
    weekdays = frozenset(int(day) for day in target.weekdays)
    return Hours(weekdays, target.hours_from, target.hours_until, zone)


def _its_turn(notice: Notice, unclaimed: QuerySet[Notice], now: datetime) -> bool:
    """Returns whether it is sent now; else it waits for the hours of its target, or is skipped."""
    target = notice.target
    if target is None:
        return True
    opens_at, before = hours_of(target).opens_at(now), _of_same_cause(notice, over=False)
    waiting = Waiting(
        reminds=notice.transition is not None and notice.transition.step == AlertStep.REPEATED,
        over=notice.over,
        told=notice.over and before.filter(sent_at__isnull=False).exists(),
        unheard=notice.over and before.exists() and not before.filter(attempts__gt=0).exists(),
        incident=notice.channel in INCIDENTS,
        held=notice.held,
        cause_over=_is_over_for_good(notice, now),
    )
    turn = turn_of(waiting, within_hours=opens_at <= now)
    if turn is Turn.HOLD:
        unclaimed.update(next_at=opens_at, held=True)
    elif turn is Turn.SKIP:
        unclaimed.update(state=NoticeState.SKIPPED)
    return turn is Turn.SEND
