"""A replay of each operation on replays, with which it can be done."""

from datetime import timedelta
from functools import partial
from typing import Any

from django.utils import timezone

from agents.models import Pool
from dlq.models import JobState, ReplayJob
from dlq.replay.operations import (
    ApproveReplay,
    CancelReplay,
    PauseReplay,
    RefuseReplay,
    ReleaseReplay,
    ResumeReplay,
)
from tests.web.operation_case import Case
from tests.web.rows import make_setting


def replay(state: JobState, pool: Pool) -> ReplayJob:
    """Nobody asked for it whose account is there still."""
    queues = {"source_queue": "DLQ.orders", "target_queue": "orders"}
    setting = make_setting(pool, "orders")
    return ReplayJob.objects.create(
        setting=setting, setting_key="orders", scope="all", state=state, needs_second=True, **queues
    )


def holding(pool: Pool) -> ReplayJob:
    """It holds a subscription for another hour."""
    job, now = replay(JobState.RUNNING, pool), timezone.now()
    job.in_order, job.hold, job.target_key = "ahead", "held", "orders"
    job.held_at, job.hold_until = now, now + timedelta(hours=1)
    job.save()
    return job


QUEUES: dict[str, Any] = {"from": "DLQ.orders", "to": "orders", "query": ""}
SEEING: dict[str, Any] = {
    "seeing": "dlq.view_replayjob",
    "or_seeing": "dlq.view_deadletter",
    "detail": QUEUES,
}
WHY = {"reason": "wrong filter"}
CASES = (
    Case(PauseReplay, partial(replay, JobState.RUNNING), "dlq.give_back", WHY, **SEEING),
    Case(
        ResumeReplay, partial(replay, JobState.PAUSED), "dlq.give_back", {"acknowledge": ["stopping"]},
        **SEEING | {"detail": QUEUES | {"acknowledged": ["stopping"]}},
    ),
    Case(ReleaseReplay, holding, "dlq.give_back", WHY, **SEEING),
    Case(CancelReplay, partial(replay, JobState.RUNNING), "dlq.give_back", WHY, **SEEING),
    Case(ApproveReplay, partial(replay, JobState.AWAITING), "dlq.approve", **SEEING),
    Case(RefuseReplay, partial(replay, JobState.AWAITING), "dlq.approve", WHY, **SEEING),
)  # fmt: skip
