"""A replay job, step by step. Each step may run twice, and at the same time elsewhere: rows are written before a move,
a move names its letters, and only a walk that began after the move says which of them left."""

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta
from uuid import UUID

import structlog
from django.db import transaction
from django.db.models import Count, F, Q, Value
from django.db.models.functions import Coalesce
from django.utils import timezone

from broker.errors import AddressUnknown, BrokerTimeout, ManagementFailed
from contract.properties import dead_letter_queue
from dlq.letter_queues import LetterQueues
from dlq.models import (
    DeadLetter,
    ItemState,
    JobState,
    LetterState,
    ReplayItem,
    ReplayJob,
    ReplaySlice,
    Scope,
    SliceState,
)
from dlq.models.replay import OPEN_JOBS
from dlq.replay import joining, planning
from dlq.replay.jobs import audit
from dlq.replay.planning import Candidate, Progress, Step

log = structlog.get_logger(__name__)

# How long a worker may be silent before another one takes the job over.
LEASE = timedelta(seconds=30)
ROWS_AT_ONCE = 500
# Letters; a slow walk must not look like a dead worker.
WALKED_A_SECOND = 1000
WALKING = (Step.PLAN, Step.CHECK)


def claim(job_id: UUID, now: datetime) -> bool:
    """Takes the job, unless it is over or somebody else works on it. What it waited for is over."""
    free = Q(lease_until=None) | Q(lease_until__lte=now)
    jobs = ReplayJob.objects.filter(free, pk=job_id, state__in=OPEN_JOBS)
    begun = {"state": JobState.RUNNING, "started_at": Coalesce("started_at", Value(now)), "problem": ""}
    return jobs.update(**begun, lease_until=now + LEASE) == 1


def release(job_id: UUID, *, until: datetime | None = None, problem: str = "") -> None:
    """Lets others take the job, at once or when a pause is over."""
    ReplayJob.objects.filter(pk=job_id, state__in=OPEN_JOBS).update(lease_until=until, problem=problem)


def run_step(job_id: UUID, queues: LetterQueues) -> bool:
    """Does the next step of a job that was claimed; whether there is more to do. Raises BrokerError."""
    job = ReplayJob.objects.get(pk=job_id)
    if job.state not in OPEN_JOBS:
        return False
    step = planning.next_step(_progress(job))
    try:
        walk = timedelta(seconds=queues.count(job.setting_key) / WALKED_A_SECOND) if step in WALKING else timedelta()
    except AddressUnknown as error:
        if step is not Step.PLAN:
            raise
        _refuse(job, str(error), timezone.now())
        return True
    ReplayJob.objects.filter(pk=job.pk).update(lease_until=timezone.now() + LEASE + walk)
    log.debug("replay step", replay=str(job.pk), step=step.value)
    if step is Step.PLAN:
        _plan(job, queues)
    elif step is Step.MOVE:
        move_next(job, queues)
    elif step is Step.CHECK:
        check(job, queues)
    else:
        finish(job, timezone.now())
    return step is not Step.FINISH


def _progress(job: ReplayJob) -> Progress:
    counts = job.slices.aggregate(
        to_move=Count("pk", filter=Q(state=SliceState.PLANNED)), to_check=Count("pk", filter=Q(state=SliceState.MOVED))
    )
    return Progress(planned=job.planned_at is not None, **counts)


# -- plan -----------------------------------------------------------------------------------------------------------


def _plan(job: ReplayJob, queues: LetterQueues) -> None:
    """Writes every slice down. A crash in between leaves slices that a second planning does not touch."""
    candidates = _candidates(job, queues.node_id())
    found = planning.plan(candidates, queues.walk(job.setting_key))
    number = job.slices.count()
    for letters in found.slices:
        number += 1
        _write_slice(job, number, letters, timezone.now())
    for start in range(0, len(found.missing), ROWS_AT_ONCE):
        _write_missing(job, found.missing[start : start + ROWS_AT_ONCE], timezone.now())
    ReplayJob.objects.filter(pk=job.pk).update(planned_at=timezone.now(), total=job.items.count())


@transaction.atomic
def _refuse(job: ReplayJob, problem: str, now: datetime) -> None:
    """There is no such dead-letter queue: nothing can be planned, and nothing was moved."""
    job.items.filter(state=ItemState.PLANNED, slice=None).update(state=ItemState.FAILED_TO_MOVE, state_at=now)
    ReplayJob.objects.filter(pk=job.pk).update(planned_at=now, problem=problem)


def _candidates(job: ReplayJob, node_id: str) -> list[Candidate]:
    """Letters of the scope that no slice holds yet. Ids of another broker name other messages here: number -1."""
    if job.scope == Scope.ALL:
        taken = ReplayItem.objects.filter(Q(job=job) | Q(state__in=[ItemState.PLANNED, ItemState.GIVEN_BACK])).values(
            "letter"
        )
        letters = DeadLetter.objects.filter(
            queue=dead_letter_queue(job.setting_key),
            state=LetterState.DEAD,
            pk__lte=job.letters_up_to,
            orig_message_id__gte=0,
        ).exclude(pk__in=taken)
    else:
        letters = DeadLetter.objects.filter(replays__job=job, replays__state=ItemState.PLANNED, replays__slice=None)
    rows = letters.order_by("pk").values_list("pk", "orig_message_id", "node_id")
    return [Candidate(pk, number if node == node_id else -1) for pk, number, node in rows]


@transaction.atomic
def _write_slice(job: ReplayJob, number: int, letters: Sequence[Candidate], now: datetime) -> None:
    piece = ReplaySlice.objects.create(
        job=job,
        number=number,
        first_letter_id=letters[0].letter,
        last_letter_id=letters[-1].letter,
        size=len(letters),
        planned_at=now,
    )
    _write_items(job, [letter.letter for letter in letters], ItemState.PLANNED, now, piece)
    held = piece.items.count()
    if held == 0:
        piece.delete()
    elif held < piece.size:  # another job took the others meanwhile
        ReplaySlice.objects.filter(pk=piece.pk).update(size=held)


@transaction.atomic
def _write_missing(job: ReplayJob, letters: Sequence[Candidate], now: datetime) -> None:
    """In the index, but not in the queue: somebody else took them, or they expired."""
    ids = [letter.letter for letter in letters]
    _write_items(job, ids, ItemState.NOT_FOUND, now, None)
    here = [letter.letter for letter in letters if letter.number >= 0]
    DeadLetter.objects.filter(pk__in=here, state=LetterState.DEAD).update(state=LetterState.GONE, state_at=now)


def _write_items(
    job: ReplayJob, letters: Sequence[int], state: ItemState, now: datetime, piece: ReplaySlice | None
) -> None:
    if job.scope != Scope.ALL:  # its items were written when the scope was frozen
        job.items.filter(letter__in=letters, slice=None).update(state=state, state_at=now, slice=piece)
        return
    items = [ReplayItem(job=job, letter_id=pk, state=state, state_at=now, slice=piece) for pk in letters]
    ReplayItem.objects.bulk_create(items, ignore_conflicts=True)


# -- move -----------------------------------------------------------------------------------------------------------


def move_next(job: ReplayJob, queues: LetterQueues) -> None:
    """Moves the first slice that was not. The try is written down before: from then on its letters may have left."""
    piece = job.slices.filter(state=SliceState.PLANNED).order_by("number").first()
    if piece is None:
        return
    ReplaySlice.objects.filter(pk=piece.pk).update(tries=F("tries") + 1)
    waiting = piece.items.filter(state=ItemState.PLANNED)
    numbers = list(waiting.order_by("pk").values_list("letter__orig_message_id", flat=True))
    try:
        moved = queues.move_back(job.setting_key, numbers) if numbers else 0
    except BrokerTimeout:
        moved = None  # perhaps moved: the walk will tell
    except ManagementFailed as error:
        _give_up(job, str(error))
        return
    ReplaySlice.objects.filter(pk=piece.pk).update(state=SliceState.MOVED, moved=moved, moved_at=timezone.now())


def _give_up(job: ReplayJob, problem: str) -> None:
    """The broker refuses the move, mostly because the subscription is not there: it will refuse the rest too."""
    log.warning("replay refused by the broker", replay=str(job.pk), reason=problem)
    ReplayJob.objects.filter(pk=job.pk).update(problem=problem)
    job.slices.filter(state=SliceState.PLANNED).update(state=SliceState.MOVED, tries=planning.MOST_TRIES)


# -- check ----------------------------------------------------------------------------------------------------------


def check(job: ReplayJob, queues: LetterQueues) -> None:
    """Walks the queue once and marks what left, slice by slice."""
    moved = list(job.slices.filter(state=SliceState.MOVED).order_by("number"))
    present = queues.walk(job.setting_key)
    for piece in moved:
        _check_slice(piece, present, timezone.now())


@transaction.atomic
def _check_slice(piece: ReplaySlice, present: Collection[int], now: datetime) -> None:
    waiting = piece.items.filter(state=ItemState.PLANNED).order_by("pk")
    items = list(waiting.values_list("pk", "letter__orig_message_id"))
    verdict = planning.judge(items, present, piece.tries)
    _mark(verdict.left, ItemState.GIVEN_BACK, LetterState.GIVEN_BACK, now)
    _mark(verdict.stuck, ItemState.FAILED_TO_MOVE, None, now)
    state = SliceState.PLANNED if verdict.again else SliceState.CHECKED
    ReplaySlice.objects.filter(pk=piece.pk).update(state=state, checked_at=None if verdict.again else now)
    joining.settle(_cases(verdict.left), now)


def _mark(items: Iterable[int], state: ItemState, letter_state: LetterState | None, now: datetime) -> None:
    chosen = ReplayItem.objects.filter(pk__in=list(items), state=ItemState.PLANNED)
    if letter_state is not None:
        letters = DeadLetter.objects.filter(pk__in=list(chosen.values_list("letter", flat=True)))
        letters.update(state=letter_state, state_at=now)
    chosen.update(state=state, state_at=now)


def _cases(items: Iterable[int]) -> set[joining.Case]:
    letters = DeadLetter.objects.filter(replays__in=list(items)).exclude(message_key="")
    return set(letters.values_list("setting_key", "message_key"))


def finish(job: ReplayJob, now: datetime) -> None:
    """Conditional: of two workers one ends the job and writes the audit."""
    counts = dict(job.items.order_by().values_list("state").annotate(Count("pk")))
    stuck = counts.get(ItemState.FAILED_TO_MOVE, 0)
    state = JobState.FAILED if stuck or (job.problem and not counts.get(ItemState.GIVEN_BACK)) else JobState.DONE
    problem = job.problem or (f"{stuck} letters stayed where they were" if stuck else "")
    with transaction.atomic():
        ended = ReplayJob.objects.filter(pk=job.pk, state__in=OPEN_JOBS)
        if ended.update(state=state, finished_at=now, lease_until=None, problem=problem):
            audit(job, f"replay_{state.value}", by=job.by, now=now, counts=counts, detail={"problem": problem})
