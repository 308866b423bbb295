"""Telling people of a trip or of a transition of an alert: tried again until it arrives or a day has passed.

At least once: who is killed between the sending and the commit leaves a notice that is sent again. The id of
the trip or of the transition in it lets a receiver see that."""

import time
from collections.abc import Iterator
from datetime import datetime, timedelta

import structlog
from django.db import transaction
from django.db.models import Exists, OuterRef
from django.utils import timezone

from alerts.models import Notice, NoticeState, NoticeTarget
from alerts.notices.channels import Undelivered, deliver
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
