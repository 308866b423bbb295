"""Celery tasks: short steps that may run twice. The rows of the job are the truth."""

import time
from datetime import timedelta
from uuid import UUID

import structlog
from celery import shared_task
from django.db.models import Q
from django.utils import timezone

from broker.errors import BrokerError
from console.reasons import said
from dlq.binned.expiring import expire
from dlq.letter_queues import letter_queues
from dlq.models import ReplayJob
from dlq.reasons import WORKER_FAILED
from dlq.replay import steps
from dlq.replay.checking import LettersHeld
from dlq.replay.jobs import RUN_TASK, start
from dlq.replay.leases import WORKABLE
from dlq.replay.overdue import end_overdue
from dlq.search.rebuild import step
from dlq.search.storing import catch_up
from dlq.waiting.tasks import run_waiting, tend_waiting
from dlq.whole.tasks import fetch_whole, tend_wholes

# Celery looks for tasks here.
__all__ = [
    "empty_bin",
    "end_overdue_outcomes",
    "fetch_whole",
    "put_words",
    "run_replay",
    "run_waiting",
    "tend_replays",
    "tend_waiting",
    "tend_wholes",
]

log = structlog.get_logger(__name__)

# Seconds that one task works on a job before it lets others have the worker.
TURN = 20.0
WORDS_TURN = BIN_TURN = 5.0
OUTCOMES_TURN = 20.0
# Jobs that one look at what nobody works on starts.
STARTED = 20
# After the broker did not answer.
PAUSE = timedelta(seconds=5)
# After a fault of ours.
LONG_PAUSE = timedelta(seconds=30)


@shared_task(name=RUN_TASK)
def run_replay(job_id: str) -> None:
    """Works on a job for a while, unless somebody else does."""
    job = UUID(job_id)
    if not steps.claim(job, timezone.now()):
        return
    end = time.monotonic() + TURN
    try:
        queues = letter_queues()
        while more := steps.run_step(job, queues):
            if time.monotonic() >= end:
                break
    except BrokerError as error:
        log.info("replay waits for the broker", replay=job_id, reason=str(error))
        problem = error.reason if isinstance(error, LettersHeld) else said(str(error))
        steps.release(job, until=timezone.now() + PAUSE, problem=problem)
        return
    except Exception as error:
        # Another try follows: the rows hold what was done. What it says is not shown, for it may quote a
        # letter.
        problem = WORKER_FAILED(type=type(error).__name__)
        steps.release(job, until=timezone.now() + LONG_PAUSE, problem=problem)
        raise
    if more:
        steps.release(job)
        start(ReplayJob(pk=job))


@shared_task(name="dlq.tend_replays")
def tend_replays() -> None:
    """Starts jobs that nobody works on: their task was lost, their worker died, or their pause is over."""
    now = timezone.now()
    free = Q(lease_until=None) | Q(lease_until__lte=now)
    jobs = ReplayJob.objects.filter(free, WORKABLE).order_by("created_at")
    for _ in range(STARTED):
        job = jobs.first()
        if job is None:
            break
        start(job)
        # Of each queue one: the others would only be told to wait for it.
        jobs = jobs.exclude(source_queue=job.source_queue)


@shared_task(name="dlq.end_overdue_outcomes")
def end_overdue_outcomes() -> None:
    """Letters of which nothing was heard for an hour; a while at a time."""
    end = time.monotonic() + OUTCOMES_TURN
    for _ in end_overdue(timezone.now()):
        if time.monotonic() >= end:
            break


@shared_task(name="dlq.put_words")
def put_words() -> None:
    """Words of letters that were stored before there was an index of them, or that a rebuild has not reached;
    a while at a time."""
    end = time.monotonic() + WORDS_TURN
    while (step(timezone.now()) or catch_up()) and time.monotonic() < end:
        pass


@shared_task(name="dlq.empty_bin")
def empty_bin() -> None:
    """Removes for good what lay in the bin long enough; a while at a time, and as long again others have the
    broker."""
    queues, end = letter_queues(), time.monotonic() + BIN_TURN
    try:
        began = time.monotonic()
        while expire(queues, timezone.now()) and (ended := time.monotonic()) < end:
            time.sleep(min(1.0, ended - began))
            began = time.monotonic()
    except BrokerError as error:
        log.info("the bin waits for the broker", reason=str(error))
