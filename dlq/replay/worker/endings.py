"""Describes how jobs end: done, failed, stopped, cancelled. Each end is a conditional UPDATE with its audit
entry."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from uuid import UUID

import structlog
from django.db import transaction
from django.db.models import Exists, F, Max, OuterRef, Q, QuerySet
from django.utils import timezone

from broker.management.dead_letters import SLICE
from broker.port import BrokerError, ManagementFailed
from console.audit.models import AuditResult
from console.jobs import crash
from console.reasons import NO_REASON, Reason
from dlq.dead_letters.rules.parser import letter_row, origin_queue_of
from dlq.hooks import hooks_of, replay_ended
from dlq.index.broker import LetterQueues
from dlq.index.walk import Walk
from dlq.models import (
    OPEN_JOBS,
    Action,
    DeadLetter,
    ItemState,
    JobState,
    ReplayItem,
    ReplayJob,
    ReplaySlice,
    SliceState,
)
from dlq.models.replay import DELIVERING, TO_A_DEAD_LETTER_QUEUE, TO_A_SUBSCRIPTION
from dlq.outcomes import results, settlement
from dlq.outcomes.rules import Report
from dlq.outcomes.settlement import Case
from dlq.reasons import STAYED, WHY_STOPPED
from dlq.replay import counts
from dlq.replay.counts import WORKABLE, planned_of, walking
from dlq.replay.creation import audit
from dlq.replay.worker import agreement
from dlq.replay.worker.pacer import target_of

log = structlog.get_logger(__name__)

# -- unconfirmed moves, searched for in their target ---------------------------------------------------------
# The target is the subscription, or another dead-letter queue. A message that lies there was moved; of one
# that does not lie there nothing is known. This only reads the broker. Killed at any point, nothing is lost:
# the reports of KMAs decide later.


# A subscription that holds more is not read: what comes out of it is reported.
MOST_READ = 20_000
AT_ONCE = 1000


def check_target(job: ReplayJob, queues: LetterQueues) -> None:
    """Confirms what lies there. Call it after the walk that indexes another dead-letter queue. Raises
    BrokerError."""
    items = ReplayItem.objects.filter(job=job, state=ItemState.UNCONFIRMED)
    cases = sorted(settlement.cases_of(list(items.values_list("pk", flat=True))))
    if not cases:
        return
    crash.point("looking")
    if job.action in TO_A_SUBSCRIPTION:
        _confirm(cases, _in_subscription(job, queues), DELIVERING)
    elif job.action in (Action.DISCARD, Action.PUT_BACK):
        for start in range(0, len(cases), AT_ONCE):
            some = cases[start : start + AT_ONCE]
            _confirm(some, _in_dead_letter_queue(job, some), (job.action,))


def _confirm(cases: Sequence[Case], seen: dict[Case, list[Report]], actions: Sequence[str]) -> None:
    found = sorted(case for case in cases if case in seen)
    for start in range(0, len(found), AT_ONCE):
        with transaction.atomic():
            settlement.settle(set(found[start : start + AT_ONCE]), timezone.now(), seen=seen, actions=actions)
            crash.point("confirming")


def _in_subscription(job: ReplayJob, queues: LetterQueues) -> dict[Case, list[Report]]:
    """Messages there that say which dead letter they were."""
    seen: dict[Case, list[Report]] = defaultdict(list)
    now = timezone.now()
    for encoded in _waiting(job, queues):
        row = letter_row(encoded, "", now)
        if row.message_key:
            seen[job.target_key or job.setting_key, row.message_key].append(
                Report(row.orig_message_id, None, now)
            )
    return seen


def _waiting(job: ReplayJob, queues: LetterQueues) -> Iterator[bytes]:
    """Messages of the subscription that came from the queue of the job."""
    setting = target_of(job)
    if setting is None or setting.destination is None:
        return
    try:
        there = queues.figures(job.target_queue).count
        if there > MOST_READ:
            return
        with walking(job, job.target_queue) as renew:
            seen = 0
            for piece in queues.browser.walk(setting.destination.name, job.target_queue):
                yield from (encoded for encoded in piece if origin_queue_of(encoded) == job.source_queue)
                seen += len(piece)
                renew(seen)
                if seen >= there:
                    return  # what a producer publishes from now on is none of them
    except BrokerError:
        # It is a help, no more: the job ends without it.
        return


def _in_dead_letter_queue(job: ReplayJob, cases: Sequence[Case]) -> dict[Case, list[Report]]:
    """Rows of dead letters that came there from the queue of the job."""
    rows = DeadLetter.objects.filter(
        queue=job.target_queue, orig_queue=job.source_queue, message_key__in={key for _, key in cases}
    )
    seen: dict[Case, list[Report]] = defaultdict(list)
    for row in rows.only("setting_key", "message_key", "orig_message_id", "seen_at"):
        seen[row.setting_key, row.message_key].append(Report(row.orig_message_id, None, row.seen_at))
    return seen


# How long a job whose dead letters are moved waits for others that move to the same queue, so that one walk
# serves them.
OTHERS_PATIENCE = timedelta(seconds=20)
WALK_CHECKED_EVERY = timedelta(seconds=1)
SHARED_WALK = "walk"


def fail_remaining(job: ReplayJob, problem: Reason, now: datetime) -> None:
    """The broker refuses the moves, mostly because a queue is not there: it will refuse the rest too."""
    log.warning("replay refused by the broker", replay=str(job.pk), reason=str(problem))
    job.refresh_from_db(fields=["counts", "planned_at"])
    changes: dict[str, object] = {"problem": problem}
    if job.planned_at is None:  # what was not written down goes nowhere
        changes |= {"planned_at": now, "total": counts.total_of(job.counts)}
    ReplayJob.objects.filter(pk=job.pk).update(**changes)
    _each_planned(job, lambda items: results.stuck(job, items, now, "refused"))


def finish(job: ReplayJob, now: datetime) -> None:
    """Ends the job and writes the audit, of two workers one. Not while a dead letter is planned: that worker
    lost it."""
    crash.point("finishing")
    if planned_of(job).exists():
        return
    job.refresh_from_db(fields=["counts", "problem"])
    stuck = job.counts.get(ItemState.FAILED_TO_MOVE, 0)
    state = JobState.FAILED if stuck or (job.problem and not counts.left_count(job.counts)) else JobState.DONE
    problem = job.problem or (STAYED(n=stuck) if stuck else NO_REASON)
    with transaction.atomic():
        if job.end(finished_at=now, state=state, problem=problem):
            result = AuditResult.FAILED if state == JobState.FAILED else AuditResult.DONE
            audit(
                job, f"replay.{state.value}", by=job.by, now=now, counts=counts.so_far(job), result=result,
                detail={"problem": str(problem)},
            )  # fmt: skip
            replay_ended(job, state, now)


def stop_job(job: ReplayJob, why: str, now: datetime) -> None:
    """Stops the job automatically. What is left is released by `wind_up`."""
    with transaction.atomic():
        running = ReplayJob.objects.filter(pk=job.pk, state__in=OPEN_JOBS)
        if running.update(state=JobState.STOPPED, problem=WHY_STOPPED[why]()):
            audit(job, "replay.stopped", by=job.by, now=now, detail={"why": why}, counts=counts.so_far(job))


def wind_up(job: ReplayJob, now: datetime) -> None:
    """Lets go what a cancelled or stopped job did not move: others may have it. A kill in between: the rest
    follows."""
    _each_planned(job, lambda items: results.cancelled(job, items, now))
    crash.point("wound up")
    if planned_of(job).exists():
        return
    job.refresh_from_db(fields=["counts"])
    with transaction.atomic():
        if job.end(finished_at=now):
            code = "replay.cancelled" if job.state == JobState.CANCELLED else "replay.stopped_done"
            audit(job, code, by=job.by, now=now, counts=counts.so_far(job))
            replay_ended(job, job.state, now)


def move_committed(job: ReplayJob, queues: LetterQueues) -> bool:
    """Moves dead letters of a cancelled or stopped job that have to leave all the same, because their copies
    went. Returns whether there were any; a walk tells then what left. A kill after the move: it is done again
    and moves nothing twice. Raises BrokerError."""
    hooks = hooks_of(job.action)
    if hooks is None:
        return False
    found = False
    for piece in job.slices.filter(state=SliceState.PLANNED, tries__gt=0).order_by("number"):
        hooks.finish(job, piece)
        items = list(piece.items.filter(state=ItemState.PLANNED).values_list("pk", flat=True))
        numbers = ReplayItem.objects.filter(pk__in=hooks.committed(items)).values_list(
            "letter__orig_message_id"
        )
        if not items or not (ids := sorted(number for (number,) in numbers)):
            continue
        found = True
        try:
            queues.move_ids(job.source_queue, ids[:SLICE], job.target_queue)
        except ManagementFailed as error:
            log.warning("original of a replayed copy not removed", replay=str(job.pk), reason=str(error))
        crash.point("committed moved")
        begun = ReplaySlice.objects.filter(pk=piece.pk, state=SliceState.PLANNED)
        begun.update(state=SliceState.MOVED, tries=F("tries") + 1, left=None, moved_exactly=None)
    return found


def _each_planned(job: ReplayJob, do: Callable[[list[int]], None]) -> None:
    while items := list(planned_of(job).values_list("pk", flat=True)[:AT_ONCE]):
        with transaction.atomic():
            counts.lock([job.pk])
            do(items)
        if not job.renew(timezone.now()):
            return


def index_target(job: ReplayJob, queues: LetterQueues) -> bool | None:
    """What was moved into another dead-letter queue has a new id there, which only a walk tells; whether one
    came to its end. Then what is unconfirmed is looked for there, or in the subscription. None: not yet,
    another walk or other jobs are waited for. Raises BrokerError: the job is not over before."""
    job.refresh_from_db(fields=["counts"])
    if not counts.left_count(job.counts):
        return True
    if job.action in TO_A_DEAD_LETTER_QUEUE and not (indexed := _walk_target(job, queues)):
        return indexed
    check_target(job, queues)
    return True


def _walk_target(job: ReplayJob, queues: LetterQueues) -> bool | None:
    now = timezone.now()
    if agreement.was_indexed(job):
        return True
    if agreement.is_being_indexed(job) or _waits_for_others(job, now):
        return None
    crash.point("indexing")
    indexing = agreement.indexing(_all_moved(job.target_queue))
    with indexing as came_to_its_end, walking(job, job.target_queue) as renew:
        walk = Walk(job.target_queue, queues.dla, queues.management, queues.browser, now)
        try:
            while walk.step(timezone.now()):
                if not renew(walk.seen):
                    return False
        finally:
            walk.close()
        came_to_its_end()
    return True


def _all_moved(target: str) -> set[UUID]:
    """Jobs of which every dead letter that goes to that queue is there now, so that a walk which begins now
    sees it."""
    unfinished = ReplayJob.objects.filter(WORKABLE, target_queue=target).exclude(planned_at=None)
    return set(unfinished.filter(~Exists(_to_come())).values_list("pk", flat=True))


def _to_come() -> QuerySet[ReplaySlice]:
    """Slices that move, or of which a dead letter may move once more."""
    slices = ReplaySlice.objects.filter(job=OuterRef("pk"))
    return slices.filter(~Q(state=SliceState.CHECKED) | Q(by_range=True))


def _waits_for_others(job: ReplayJob, now: datetime) -> bool:
    """Returns whether jobs that move to the same queue have dead letters left: then one walk serves them all.
    Not for long."""
    last = job.slices.aggregate(last=Max("checked_at"))["last"]
    if last is None or now - last > OTHERS_PATIENCE:
        return False
    waits = Q(lease_until__gt=now, holder=None)
    others = ReplayJob.objects.filter(state__in=OPEN_JOBS, target_queue=job.target_queue).exclude(pk=job.pk)
    return others.exclude(waits).filter(Q(planned_at=None) | Exists(_to_come())).exists()
