"""Carrying out jobs as a worker does."""

from datetime import datetime
from functools import partial
from typing import Any, TypeVar

from django.utils import timezone

from agents.models import LaunchSetting
from console.audit.log import Person
from console.jobs.engine import Job, Worker, claim, held
from dlq.index.broker import LetterQueues
from dlq.models import ReplayJob
from dlq.replay.creation import create_job
from dlq.replay.requests import ReplayRequest
from dlq.replay.worker.step import ReplayWorker
from dlq.subscriptions.worker import MessageActionWorker
from ma_site.tasks import run_job

J = TypeVar("J", bound=Job)

run_replay = partial(run_job, "dlq.replayjob")
run_waiting = partial(run_job, "dlq.waitingaction")


def replays(queues: LetterQueues) -> ReplayWorker:
    return ReplayWorker(lambda: queues)


def actions(queues: LetterQueues) -> MessageActionWorker:
    return MessageActionWorker(lambda: queues)


def taken(worker: Worker[J], job: J) -> J:
    found = claim(worker, job.pk, timezone.now())
    assert found is not None
    return found


def carry_out(worker: Worker[J], job: J) -> J:
    """Every step that there is to do now; what it gives holds the job still."""
    mine = taken(worker, job)
    while (found := held(worker, mine, timezone.now())) is not None and worker.step(found) is True:
        mine = found
    return mine


def begun(setting: LaunchSetting, *, by: Person, now: datetime | None = None, **asked: Any) -> ReplayJob:
    """A job of what nobody looked at before."""
    return create_job(ReplayRequest(setting, **asked), by=by, now=now or timezone.now())
