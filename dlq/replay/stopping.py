"""A job on letters of a setting that is switched off: it moves nothing while something still consumes for the
setting.

Disabled is a wish until every run has closed: a server may learn of it seconds later, and what comes into the
subscription before goes to the old run. The broker is asked for the consumers before each slice; where there
are some, the job waits for WAITS_FOR at most and then pauses. A person may let it go on all the same.

The beginning of the wait is a column of the job, written by a conditional UPDATE. Killed before it: the next
worker writes it. Killed after it: the next worker waits for the rest. Killed before the pause is committed:
the next worker asks the broker again, and pauses or goes on. After it: the job is paused and has no worker.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum

from django.db import transaction

from agents.models import LaunchSetting, Run
from broker.errors import ManagementFailed
from broker.port import Management
from dlq import crash
from dlq.models import JobState, ReplayJob
from dlq.models.replay import DELIVERING
from dlq.replay.jobs import audit
from dlq.replay.pace import target_of

WAITS_FOR = timedelta(seconds=60)
ASKED_EVERY = timedelta(seconds=2)
# Why a job waits, and the code of why it was paused by itself.
STOPPING, CONSUMERS_OPEN = "stopping", "consumers_open"
MOST_SERVERS = 20


class Gate(Enum):
    OPEN = "open"
    WAIT = "wait"
    PAUSE = "pause"


@dataclass(frozen=True, slots=True)
class Asked:
    """What the broker said: so many consumers are open."""

    gate: Gate
    consumers: int = 0


def decide(consumers: int, waits_since: datetime | None, now: datetime) -> Gate:
    """Pure. `waits_since`: when consumers of the disabled setting were first seen by this job."""
    if consumers == 0:
        return Gate.OPEN
    waited = waits_since is not None and now - waits_since >= WAITS_FOR
    return Gate.PAUSE if waited else Gate.WAIT


def ask(job: ReplayJob, broker: Management, now: datetime) -> Asked:
    """Whether the next slice may move as far as the consumers of the setting go. Raises BrokerError."""
    if job.action not in DELIVERING or job.goes_on_all_the_same:
        return Asked(Gate.OPEN)
    setting = target_of(job)
    if setting is None or setting.enabled or not setting.takes_messages:
        return Asked(Gate.OPEN)
    consumers = open_consumers(broker, setting.key)
    gate = decide(consumers, job.stopping_since, now)
    mine = ReplayJob.objects.filter(pk=job.pk)
    if gate is Gate.WAIT:
        mine.filter(stopping_since=None).update(stopping_since=now)
        crash.point("stopping seen")
    elif gate is Gate.OPEN and job.stopping_since is not None:
        # One that opens later is waited for as long again.
        mine.update(stopping_since=None)
    job.refresh_from_db(fields=["stopping_since"])
    return Asked(gate, consumers)


def open_consumers(broker: Management, queue: str) -> int:
    """Of a queue that is not there nobody consumes: the move says why it fails. Raises BrokerError."""
    try:
        return int(broker.attribute(f"queue.{queue}", "ConsumerCount"))
    except ManagementFailed:
        return 0


def pause(job: ReplayJob, consumers: int, now: datetime) -> bool:
    """Pauses a job that waited in vain; whether it was still ours and running."""
    setting = target_of(job)
    why = {"code": CONSUMERS_OPEN, "consumers": consumers, "servers": servers_of(setting) if setting else []}
    with transaction.atomic():
        paused = job.end(
            state=JobState.PAUSED, paused_at=now, paused_by=None, pause_reason=why, stopping_since=None
        )
        if paused:
            audit(job, "replay.pause", by=job.by, now=now, detail={"why": why}, counts=job.counts)
        crash.point("stopping pauses")
    return paused


def servers_of(setting: LaunchSetting) -> list[str]:
    """The servers whose runs of the setting have not closed. None where the consumers belong to somebody
    else."""
    runs = Run.objects.filter(activation__setting=setting, closed_at=None)
    return sorted(set(runs.order_by().values_list("server__name", flat=True)))[:MOST_SERVERS]
