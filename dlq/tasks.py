"""Celery tasks: short steps that may run twice. The rows of the job are the truth."""

import time
from collections.abc import Sequence
from typing import Any

import structlog
from celery import shared_task
from django.utils import timezone

from broker.port import BrokerError
from console import hooks
from console.jobs.engine import Worker
from dlq.full_body.worker import BodyFetchWorker
from dlq.index.broker import letter_queues
from dlq.outcomes.settlement import end_overdue
from dlq.replay.worker.step import ReplayWorker
from dlq.search.rebuild import step
from dlq.search.word_index import catch_up
from dlq.subscriptions.worker import MessageActionWorker
from dlq.trash.removal import expire

log = structlog.get_logger(__name__)

# Seconds that one task works before it lets others have the worker.
WORDS_SECONDS = TRASH_SECONDS = 5.0
OUTCOMES_SECONDS = 20.0


@hooks.job_workers.implement
def workers() -> Sequence[Worker[Any]]:
    return ReplayWorker(letter_queues), MessageActionWorker(letter_queues), BodyFetchWorker(letter_queues)


@shared_task(name="dlq.end_overdue_outcomes")
def end_overdue_outcomes() -> None:
    """Dead letters of which nothing was heard for an hour; a while at a time."""
    end = time.monotonic() + OUTCOMES_SECONDS
    for _ in end_overdue(timezone.now()):
        if time.monotonic() >= end:
            break


@shared_task(name="dlq.put_words")
def index_missing_words() -> None:
    """Words of dead letters that were stored before there was an index of them, or that a rebuild has not
    reached; a while at a time."""
    end = time.monotonic() + WORDS_SECONDS
    while (step(timezone.now()) or catch_up()) and time.monotonic() < end:
        pass


@shared_task(name="dlq.empty_bin")
def purge_trash() -> None:
    """Removes for good what lay in the trash long enough; a while at a time, and as long again others have
    the broker."""
    queues, end = letter_queues(), time.monotonic() + TRASH_SECONDS
    try:
        began = time.monotonic()
        while expire(queues, timezone.now()) and (ended := time.monotonic()) < end:
            time.sleep(min(1.0, ended - began))
            began = time.monotonic()
    except BrokerError as error:
        log.info("trash expiry postponed: broker unavailable", reason=str(error))
