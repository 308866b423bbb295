"""Celery tasks of waiting messages: short steps that may run twice. The rows of the action are the truth."""

import time
from datetime import timedelta
from uuid import UUID

import structlog
from celery import shared_task
from django.db.models import Q
from django.utils import timezone

from broker.errors import BrokerError
from dlq.letter_queues import letter_queues
from dlq.models.waiting import OPEN_ACTIONS, WaitingAction
from dlq.waiting import steps
from dlq.waiting.asking import RUN_TASK, start

log = structlog.get_logger(__name__)

# Seconds that one task works on an action before it lets others have the worker.
TURN = 20.0
# After the broker did not answer, and while something else must happen first.
PAUSE = timedelta(seconds=5)
SHORT_PAUSE = timedelta(seconds=1)


@shared_task(name=RUN_TASK)
def run_waiting(action_id: str) -> None:
    """Works on an action for a while, unless somebody else does."""
    action = UUID(action_id)
    if not steps.claim(action, timezone.now()):
        return
    end = time.monotonic() + TURN
    try:
        queues = letter_queues()
        while more := steps.run_step(action, queues):
            if time.monotonic() >= end:
                break
    except steps.NotYet:
        steps.release(action, until=timezone.now() + SHORT_PAUSE)
        return
    except BrokerError as error:
        log.info("action on waiting messages waits for the broker", action=action_id, reason=str(error))
        steps.release(action, until=timezone.now() + PAUSE, problem=str(error))
        return
    if more:
        steps.release(action)
        start(WaitingAction(pk=action))


@shared_task(name="dlq.tend_waiting")
def tend_waiting() -> None:
    """Starts actions that nobody works on: their task was lost, their worker died, or their pause is over."""
    free = Q(lease_until=None) | Q(lease_until__lte=timezone.now())
    for action in WaitingAction.objects.filter(free, state__in=OPEN_ACTIONS).order_by("created_at")[:20]:
        start(action)
