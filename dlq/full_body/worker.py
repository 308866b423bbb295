"""Looking for a dead letter in its queue, from the head. One walk cannot be interrupted and gone on with, so
a try is whole: bounded in time, cancelled by its row, begun anew by another worker when this one dies."""

import time
from collections.abc import Callable
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db.models import Q
from django.utils import timezone

from broker.port import BrokerError
from console.jobs import crash
from console.jobs.engine import Worker
from console.reasons import NO_REASON, Reason
from dlq.dead_letters.rules.parser import letter_row
from dlq.full_body.operations import KEPT
from dlq.index.broker import LetterQueues
from dlq.index.walk import identifier_of, message_count
from dlq.models import OPEN_FETCHES, DeadLetter, FetchState, LetterQueue, WholeFetch
from dlq.reasons import NOT_THERE, OTHER_BROKER, TOO_DEEP, TOO_LARGE, TRIED

TRIES = 3
# Seconds of one try (a task is ended by Celery after 300), and between two notes of how far it is.
LONGEST, NOTE_EVERY = 240.0, 1.0
# Bytes of a message that the database is given.
LARGEST = 100 * 1024 * 1024


class BodyFetchWorker(Worker[WholeFetch]):
    """A step is a whole try."""

    model, workable, order = WholeFetch, Q(state__in=OPEN_FETCHES), "pk"

    def __init__(self, queues: Callable[[], LetterQueues]) -> None:
        self._queues = queues

    def begun(self, job: WholeFetch, now: datetime) -> dict[str, Any]:
        return {"state": FetchState.RUNNING, "tries": job.tries + 1, "seen": 0}

    def step(self, job: WholeFetch) -> bool:
        found, problem = _search(job, job.letter, self._queues()) if job.tries <= TRIES else (None, TRIED())
        crash.point("whole: read, not stored")
        state = FetchState.FAILED if found is None else FetchState.DONE
        if found is not None or problem:
            job.end(state=state, encoded=found, ended_at=timezone.now(), problem=problem)
        return False

    def tidy(self, now: datetime) -> None:
        old = WholeFetch.objects.filter(state=FetchState.DONE, ended_at__lt=now - KEPT)
        old.update(state=FetchState.DROPPED, encoded=None)


def _search(fetch: WholeFetch, letter: DeadLetter, queues: LetterQueues) -> tuple[bytes | None, Reason]:
    """The bytes, or why there are none; neither: it was cancelled. Raises BrokerError."""
    node_id = str(queues.management.attribute("broker", "NodeID"))
    if node_id != letter.node_id:
        return None, OTHER_BROKER()
    row = LetterQueue.objects.filter(queue=letter.queue).first()
    address = (row.address if row else "") or settings.MA_DLA_ADDRESS
    identifier = identifier_of(
        letter.queue, address, node_id, lambda encoded: letter_row(encoded, node_id, fetch.at)
    )
    before, seen = message_count(queues.management, letter.queue), 0
    end, next_note = time.monotonic() + LONGEST, 0.0
    pieces = queues.browser.walk(address, letter.queue)
    try:
        for piece in pieces:
            letters, _known = identifier.of(piece)
            if one := letters.get(letter.orig_message_id):
                return (one.encoded, NO_REASON) if len(one.encoded) <= LARGEST else (None, TOO_LARGE())
            seen += len(piece)
            if time.monotonic() >= next_note:
                next_note = time.monotonic() + NOTE_EVERY
                if not fetch.renew(timezone.now(), seen=seen):
                    return None, NO_REASON
                crash.point("whole: read a piece")
            if time.monotonic() >= end:
                return None, TOO_DEEP()
    finally:
        pieces.close()  # type: ignore[attr-defined]  # a generator
    if seen < min(before, message_count(queues.management, letter.queue)):
        raise BrokerError(f"the scan of {letter.queue} ended early")
    return None, NOT_THERE()
