"""Looking for a letter in its queue, from the head. One walk cannot be interrupted and gone on with, so a try
is whole: bounded in time, cancelled by its row, begun anew by another worker when this one dies."""

import time
from datetime import datetime, timedelta

import structlog
from django.conf import settings
from django.db.models import Q, QuerySet
from django.utils import timezone

from broker.errors import BrokerError
from console.reasons import NO_REASON, Reason, said
from dlq import crash
from dlq.letter_queues import LetterQueues
from dlq.models import OPEN_FETCHES, DeadLetter, FetchState, LetterQueue, WholeFetch
from dlq.reading import letter_row
from dlq.reasons import NOT_THERE, OTHER_BROKER, TOO_DEEP, TOO_LARGE, TRIED
from dlq.walking import message_count, telling_of
from dlq.whole.asking import KEPT

log = structlog.get_logger(__name__)

LEASE = timedelta(seconds=30)
TRIES = 3
# Seconds of one try (a task is ended by Celery after 300), and between two notes of how far it is.
LONGEST, NOTE_EVERY = 240.0, 1.0
# Bytes of a message that the database is given.
LARGEST = 100 * 1024 * 1024


def run(fetch_id: int, queues: LetterQueues) -> None:
    """Does nothing for one that is over or that somebody else works on. Never raises for the broker."""
    now = timezone.now()
    if not _claim(fetch_id, now):
        return
    fetch = WholeFetch.objects.select_related("letter").get(pk=fetch_id)
    try:
        found, problem = _look(fetch, fetch.letter, queues)
    except BrokerError as error:
        log.info("whole letter waits for the broker", fetch=fetch_id, reason=str(error))
        _mine(fetch_id).update(lease_until=timezone.now() + timedelta(seconds=5), problem=said(str(error)))
        return
    ended = timezone.now()
    crash.point("whole: read, not stored")
    if found is not None:
        _mine(fetch_id).update(
            state=FetchState.DONE, encoded=found, ended_at=ended, lease_until=None, problem=NO_REASON
        )
    elif problem:
        _mine(fetch_id).update(state=FetchState.FAILED, ended_at=ended, lease_until=None, problem=problem)


def tend(now: datetime) -> list[WholeFetch]:
    """Those that nobody works on; what is old is dropped, what was tried too often is given up."""
    free = Q(lease_until=None) | Q(lease_until__lte=now)
    waiting = WholeFetch.objects.filter(free, state__in=OPEN_FETCHES)
    waiting.filter(tries__gte=TRIES).update(
        state=FetchState.FAILED, ended_at=now, lease_until=None, problem=TRIED()
    )
    WholeFetch.objects.filter(state=FetchState.DONE, ended_at__lt=now - KEPT).update(
        state=FetchState.DROPPED, encoded=None
    )
    return list(waiting.defer("encoded").order_by("pk")[:5])


def _claim(fetch_id: int, now: datetime) -> bool:
    free = Q(lease_until=None) | Q(lease_until__lte=now)
    row = WholeFetch.objects.filter(free, pk=fetch_id, state__in=OPEN_FETCHES, tries__lt=TRIES).first()
    if row is None:
        return False
    mine = WholeFetch.objects.filter(free, pk=fetch_id, state__in=OPEN_FETCHES, tries=row.tries)
    return mine.update(state=FetchState.RUNNING, tries=row.tries + 1, lease_until=now + LEASE, seen=0) == 1


def _mine(fetch_id: int) -> QuerySet[WholeFetch]:
    return WholeFetch.objects.filter(pk=fetch_id, state=FetchState.RUNNING)


def _look(fetch: WholeFetch, letter: DeadLetter, queues: LetterQueues) -> tuple[bytes | None, Reason]:
    """The bytes, or why there are none; neither: it was cancelled. Raises BrokerError."""
    node_id = str(queues.management.attribute("broker", "NodeID"))
    if node_id != letter.node_id:
        return None, OTHER_BROKER()
    row = LetterQueue.objects.filter(queue=letter.queue).first()
    address = (row.address if row else "") or settings.MA_DLA_ADDRESS
    telling = telling_of(
        letter.queue, address, node_id, lambda encoded: letter_row(encoded, node_id, fetch.at)
    )
    before, seen = message_count(queues.management, letter.queue), 0
    end, next_note = time.monotonic() + LONGEST, 0.0
    pieces = queues.browser.walk(address, letter.queue)
    try:
        for piece in pieces:
            letters, _known = telling.of(piece)
            if one := letters.get(letter.orig_message_id):
                return (one.encoded, NO_REASON) if len(one.encoded) <= LARGEST else (None, TOO_LARGE())
            seen += len(piece)
            if time.monotonic() >= next_note:
                next_note = time.monotonic() + NOTE_EVERY
                if not _mine(fetch.pk).update(seen=seen, lease_until=timezone.now() + LEASE):
                    return None, NO_REASON
                crash.point("whole: read a piece")
            if time.monotonic() >= end:
                return None, TOO_DEEP()
    finally:
        pieces.close()  # type: ignore[attr-defined]  # a generator
    if seen < min(before, message_count(queues.management, letter.queue)):
        raise BrokerError(f"a walk of {letter.queue} ended too soon")
    return None, NOT_THERE()
