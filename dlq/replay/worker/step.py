"""A job, step by step. Each step may be the last one of its worker, may run twice, and at the same time
elsewhere."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

import structlog
from django.db.models import Value
from django.db.models.functions import Coalesce
from django.utils import timezone

from broker.port import AddressUnknown, BrokerError
from console.jobs import crash
from console.jobs.engine import Wait, Worker, start
from console.operations.refusals import Refused
from console.reasons import Reason, said
from dlq.index.broker import LetterQueues
from dlq.models import OPEN_JOBS, JobState, ReplayJob, SliceState
from dlq.outcomes import results
from dlq.replay import counts
from dlq.replay.counts import WINDING_UP, WORKABLE
from dlq.replay.scopes import LISTED
from dlq.replay.worker import agreement, endings, hold, pacer, verifier
from dlq.replay.worker.mover import End, Ended, Moves
from dlq.replay.worker.planner import Planner

log = structlog.get_logger(__name__)

FEED_BEHIND = "feed"


class ReplayWorker(Worker[ReplayJob]):
    """One job of a queue at a time."""

    model, workable, lane = ReplayJob, WORKABLE, "source_queue"

    def __init__(self, queues: Callable[[], LetterQueues]) -> None:
        self._queues = queues

    def begun(self, job: ReplayJob, now: datetime) -> dict[str, Any]:
        columns = {"started_at": Coalesce("started_at", Value(now)), "walking_since": None}
        return columns | ({"state": JobState.RUNNING} if job.state in OPEN_JOBS else {})

    def tidy(self, now: datetime) -> None:
        hold.end_overdue_holds(now)
        # An older job of its lane may wait for it, and would be started instead of it for ever.
        for job in hold.holders(self.free(now)):
            start(job)

    def problem_of(self, error: BrokerError) -> Reason:
        return error.reason if isinstance(error, verifier.LettersHeld) else super().problem_of(error)

    def step(self, job: ReplayJob) -> bool | Wait:
        queues = self._queues()
        try:
            if _recover(job):
                return True
            return _wind_up(job, queues) if job.state in WINDING_UP else _go_on(job, queues)
        except AddressUnknown as error:
            if job.state in WINDING_UP:  # what is known of its letters is all that will be
                return _over(job, queues, endings.wind_up)
            endings.fail_remaining(job, said(str(error)), timezone.now())
            return _over(job, queues, endings.finish)


def _recover(job: ReplayJob) -> bool:
    """Tells the slices of which a dead worker began the move and did not write down what left; whether there
    was one to tell.

    It had at most two. The answer for the first one was committed with the begin of the second. Of the second
    it knew nothing: that one is moved once more, which moves nothing twice. A job that is over moves nothing
    any more: a walk tells."""
    moving = job.slices.filter(state=SliceState.PLANNED, count_before__isnull=False)
    begun = list(moving.order_by("number"))
    for piece in begun[:-1]:
        if piece.moved == piece.size:
            results.all_left(job, piece, timezone.now())
        else:
            verifier.to_be_walked(job, piece, None, None)
    if begun and job.state not in OPEN_JOBS:
        verifier.to_be_walked(job, begun[-1], None, None)
        return True
    return len(begun) > 1


def _wind_up(job: ReplayJob, queues: LetterQueues) -> bool | Wait:
    if verifier.walk_moved(job, queues) or endings.move_committed(job, queues):
        return True
    told = verifier.ranges_reported(job, queues)
    if told is None:
        return Wait(timezone.now() + verifier.FEED_CHECKED_EVERY, FEED_BEHIND)
    return _indexed(job, queues, endings.wind_up) if told else True


def _go_on(job: ReplayJob, queues: LetterQueues) -> bool | Wait:
    planner = None
    if hold.holds(job) and not _all_moved(job):
        if hold.is_over(job, timezone.now()):
            endings.stop_job(job, hold.OVER, timezone.now())
            return True
        if waits := hold.begin(job, queues.management, timezone.now()):
            return waits
    if job.planned_at is None:
        try:
            planner = _planner(job, queues)
        except Refused as refused:
            raise AddressUnknown(refused.reason) from refused
        crash.point("planned")
        if planner is None:
            return True
    ended = Moves(job, queues, planner).run()
    log.debug("replay moved", replay=str(job.pk), ended=ended.end.value, why=ended.why)
    return _after(job, queues, ended)


def _all_moved(job: ReplayJob) -> bool:
    return job.planned_at is not None and not counts.planned_of(job).exists()


def _planner(job: ReplayJob, queues: LetterQueues) -> Planner | None:
    """One that plans while slices move, where the index agrees with the queue; else a walk says what is
    there, and everything is planned at once: None."""
    node = queues.node_id()
    count = queues.figures(job.source_queue).count
    alone = job.scope in LISTED and agreement.walk_costs_more(job.total, count)
    if agreement.agrees(job.source_queue, queues, agreement.worth(count, alone=alone)):
        planner = Planner(job, node)
        planner.step(timezone.now())
        return planner
    if alone:
        planner = Planner(job, node, alone=True)
    else:
        present = agreement.present_for(job, node, queues)
        if present is None:
            return None
        planner = Planner(job, node, present)
    while planner.step(timezone.now()):
        if not job.renew(timezone.now()):
            break
    return None


def _after(job: ReplayJob, queues: LetterQueues, ended: Ended) -> bool | Wait:
    now = timezone.now()
    if ended.end in (End.TIME, End.LOST):  # paused, cancelled or another worker's: the engine looks
        return True
    if ended.end is End.WAIT:
        return Wait(ended.until or now, ended.why)
    if ended.end is End.PAUSE and ended.asked is not None:
        pacer.pause(job, ended.asked, now)
        return False
    if ended.end is End.STOP:
        endings.stop_job(job, ended.why, now)
        return True
    if ended.end is End.REFUSED:
        if verifier.walk_moved(job, queues):
            return True
        endings.fail_remaining(job, said(ended.why), now)
    return _at_the_end(job, queues)


def _at_the_end(job: ReplayJob, queues: LetterQueues) -> bool | Wait:
    """Nothing is left to move: what the figures did not tell is looked at, then the job is over."""
    if verifier.walk_moved(job, queues):
        return True
    job.refresh_from_db(fields=["planned_at"])
    if job.planned_at is None or job.slices.filter(state="planned", items__state="planned").exists():
        return True
    told = verifier.ranges_reported(job, queues)
    if told is None:
        return Wait(timezone.now() + verifier.FEED_CHECKED_EVERY, FEED_BEHIND)
    return _indexed(job, queues, endings.finish) if told else True


def _indexed(job: ReplayJob, queues: LetterQueues, end: Callable[[ReplayJob, datetime], None]) -> bool | Wait:
    """Ends the job once the index knows where its dead letters went; a walk for several jobs is waited
    for."""
    found = endings.index_target(job, queues)
    if found is None:
        return Wait(timezone.now() + endings.WALK_CHECKED_EVERY, endings.SHARED_WALK)
    return _over(job, queues, end) if found else False


def _over(job: ReplayJob, queues: LetterQueues, end: Callable[[ReplayJob, datetime], None]) -> bool | Wait:
    """Ends the job, and before that its hold: what went ahead is handled first, where nobody has stopped
    it."""
    handled = job.state in OPEN_JOBS
    if waits := hold.end(job, queues.management, timezone.now(), handled=handled):
        return waits
    end(job, timezone.now())
    return False
