"""Describes what left the queue, and by whom: by the broker's answers where they are clear, by a walk where
they are not.

What a walk does not find is gone. Our moves took it where they took as many as are gone. Else it is
unconfirmed, until its target, a report of a KMA or a death tells. Killed at any point: what was committed
stands, the next worker walks again.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import F, Max, Min, QuerySet, Value
from django.utils import timezone

from broker.port import BrokerUnavailable
from console.jobs import crash
from console.reasons import Reason
from dlq.index.broker import LetterQueues
from dlq.models import (
    OPEN_JOBS,
    DeadLetter,
    ItemState,
    LetterState,
    ReplayItem,
    ReplayJob,
    ReplaySlice,
    SliceState,
)
from dlq.outcomes import results, settlement
from dlq.reasons import HELD
from dlq.replay import counts
from dlq.replay.counts import walking
from dlq.replay.preflight import rules
from dlq.replay.rules import slices
from dlq.replay.worker import agreement

# How long dead letters that another consumer has in delivery are waited for: it may take them, or let go of
# them.
HELD_PATIENCE = timedelta(seconds=60)
# How long the end of a job waits for the feed: what died during the moves may lie in their ranges.
FEED_PATIENCE = timedelta(seconds=10)
FEED_CHECKED_EVERY = timedelta(seconds=0.5)


class LettersHeld(BrokerUnavailable):
    """Another consumer has dead letters of a slice in delivery. Temporary: walk again."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(str(reason))
        self.reason = reason


def to_be_walked(
    job: ReplayJob, piece: ReplaySlice, left: int | None, moved_exactly: int | None, whole: Sequence[int] = ()
) -> None:
    """A walk has to look what left; `left`: how many did by the figures, `moved_exactly`: how many the last
    try took, None where nobody knows. `whole` are ids that certainly went."""
    with transaction.atomic():
        counts.lock([job.pk])
        unchecked = ReplaySlice.objects.filter(pk=piece.pk, state=SliceState.PLANNED)
        more = Value(None) if moved_exactly is None else F("moved_exactly") + moved_exactly
        if not unchecked.update(state=SliceState.MOVED, left=left, moved=piece.moved, moved_exactly=more):
            return
        went = (
            piece.items.filter(state=ItemState.PLANNED, letter__orig_message_id__in=whole) if whole else None
        )
        if went is not None:
            results.left(job, list(went.values_list("pk", flat=True)), timezone.now())


def again(piece: ReplaySlice) -> None:
    """Resets it to be moved once more: nothing of it left. It keeps its tries."""
    begun = ReplaySlice.objects.filter(pk=piece.pk, state=SliceState.PLANNED)
    begun.update(count_before=None, added_before=None)


# -- by a walk -----------------------------------------------------------------------------------------------


def walk_moved(job: ReplayJob, queues: LetterQueues) -> bool:
    """Walks the queue once and tells every slice that the broker's answers did not tell; whether there were
    any. Raises LettersHeld when some are left for the next walk."""
    pieces = job.slices.filter(state=SliceState.MOVED).order_by("number")
    if not pieces.exists():
        return False
    # Of a range it is known who took what is gone once every late dead letter in it is known.
    complete = queues.feed_is_empty()
    found = _present(job, queues)
    if found is not None:
        crash.point("walked")
        held = 0
        for piece in pieces.iterator(chunk_size=100):
            held += _judge(job, piece, found, timezone.now(), complete=complete)
            crash.point("judged")
        if held:
            raise LettersHeld(HELD(n=held, queue=job.source_queue))
    return True


def _present(job: ReplayJob, queues: LetterQueues) -> agreement.IdsInQueue | None:
    with walking(job, job.source_queue) as renew:
        return agreement.present(job.source_queue, queues, renew)


@transaction.atomic
def _judge(
    job: ReplayJob, piece: ReplaySlice, found: agreement.IdsInQueue, now: datetime, *, complete: bool
) -> int:
    """Returns how many dead letters of it are to be looked for later."""
    waiting = piece.items.filter(state=ItemState.PLANNED)
    locked = _lock(job, piece, waiting)
    items = list(waiting.order_by("pk").values_list("pk", "letter__orig_message_id"))
    patient = job.state in OPEN_JOBS and piece.moved_at is not None and now - piece.moved_at < HELD_PATIENCE
    verdict = slices.judge_slice(items, found, found.held, piece.tries, patient=patient)
    late = late_letters(job, piece, found, now) if piece.by_range else []
    unclear = piece.by_range and not complete
    changes: dict[str, object] = {"state": SliceState.CHECKED, "checked_at": now, "by_range": unclear}
    if verdict.held:
        changes = {"state": SliceState.MOVED}
    elif verdict.again:
        changes = {"state": SliceState.PLANNED, "by_range": False, "size": len(verdict.again)}
        changes |= {"count_before": None, "added_before": None, "left": None}
        changes |= {"moved_exactly": None} if unclear else {}
    results.unconfirmed(job, verdict.gone, now)
    if not verdict.held:
        held, others = _split(items, verdict.stuck, found.held)
        results.stuck(job, held, now, rules.HELD)
        results.stuck(job, others, now)
    ReplaySlice.objects.filter(pk=piece.pk).update(**changes)
    if not unclear:
        results.conclude(job, piece.pk, now)
    settlement.settle(settlement.cases_of([*verdict.gone, *late]), now, locked=locked)
    return len(verdict.held)


def _lock(job: ReplayJob, piece: ReplaySlice, items: QuerySet[ReplayItem] | None = None) -> frozenset[UUID]:
    """The job, and others that had the same messages: what is found out of these items and of late dead
    letters is joined with what is known of theirs."""
    cases: set[settlement.Case] = (
        set() if items is None else settlement.cases_of(list(items.values_list("pk", flat=True)))
    )
    if piece.by_range:
        cases |= settlement.cases_of_letters(job, _died_between(job, piece.first_number, piece.last_number))
    return settlement.lock_cases(cases, job)


def _split(
    items: Sequence[tuple[int, int]], stuck: Sequence[int], held: frozenset[int]
) -> tuple[list[int], list[int]]:
    """Those of `stuck` that another consumer has in delivery, and the others."""
    numbers = dict(items)
    return [one for one in stuck if numbers[one] in held], [one for one in stuck if numbers[one] not in held]


def late_letters(job: ReplayJob, piece: ReplaySlice, present: slices.Present, now: datetime) -> list[int]:
    """Dead letters that died after the planning with ids inside of a range, and that are gone: its move took
    them along, or others did. They get an item that says so. Call it in a transaction; the items."""
    rows = list(
        _died_between(job, piece.first_number, piece.last_number)
        .exclude(replays__job=job)
        .values_list("pk", "orig_message_id")
    )
    taken = [pk for pk, number in rows if number not in present]
    made = [ReplayItem(job=job, letter_id=pk, slice=piece, state_at=now, why="late") for pk in taken]
    ReplayItem.objects.bulk_create(made, ignore_conflicts=True)
    items = list(piece.items.filter(letter__in=taken, state=ItemState.PLANNED).values_list("pk", flat=True))
    if items:
        counts.add_counts(job.pk, {ItemState.PLANNED: len(items)})
        results.unconfirmed(job, items, now, "late")
        ReplayJob.objects.filter(pk=job.pk).update(total=F("total") + len(items))
    return items


def _died_between(job: ReplayJob, first: int | None, last: int | None) -> QuerySet[DeadLetter]:
    """Dead letters that died since the planning with ids between the two."""
    return DeadLetter.objects.filter(
        queue=job.source_queue,
        state__in=results.LEAVING,
        pk__gt=job.letters_up_to or 0,
        orig_message_id__range=(first, last),
    )


# -- ranges, at the end --------------------------------------------------------------------------------------


def _ranges(job: ReplayJob) -> QuerySet[ReplaySlice]:
    """Those that were moved, and of which nobody looked yet whether late dead letters lay in them."""
    ranges: QuerySet[ReplaySlice] = job.slices.filter(state=SliceState.CHECKED, by_range=True)
    return ranges


def ranges_reported(job: ReplayJob, queues: LetterQueues) -> bool | None:
    """Returns whether what the ranges took along is known: looked at now where it has to be. None: not before
    the feed has brought what died meanwhile."""
    ends = _ranges(job).aggregate(first=Min("first_number"), last=Max("last_number"))
    if ends["first"] is None:
        return True
    behind = not queues.feed_is_empty()
    moved_at = job.slices.aggregate(last=Max("moved_at"))["last"]
    if behind and moved_at is not None and timezone.now() - moved_at <= FEED_PATIENCE:
        return None
    # One may have gone in place of a dead letter of the scope: the figures would not show it.
    if behind or _died_between(job, ends["first"], ends["last"]).exists():
        _walk_ranges(job, queues, complete=not behind)
        return False
    for piece in (
        _ranges(job).filter(items__state=ItemState.UNCONFIRMED).distinct().order_by("number").iterator(100)
    ):
        with transaction.atomic():
            counts.lock([job.pk])
            results.conclude(job, piece.pk, timezone.now())
    # What dies from now on was not there when they moved: nothing of them is asked again.
    _ranges(job).update(by_range=False)
    return True


def _walk_ranges(job: ReplayJob, queues: LetterQueues, *, complete: bool) -> None:
    """Looks for dead letters of the scope that stayed because a late one went instead; they are moved again,
    by ids. `complete`: the index knows of every late dead letter."""
    present = _present(job, queues)
    if present is not None:
        for piece in _ranges(job).order_by("number").iterator(100):
            _recheck(job, piece, present, timezone.now(), complete=complete)


@transaction.atomic
def _recheck(
    job: ReplayJob, piece: ReplaySlice, present: slices.Present, now: datetime, *, complete: bool
) -> None:
    locked = _lock(job, piece)
    late = late_letters(job, piece, present, now)
    items = piece.items.filter(state=ItemState.GIVEN_BACK).values_list(
        "pk", "letter", "letter__orig_message_id"
    )
    stayed = [(item, letter) for item, letter, number in items if number in present]
    changes: dict[str, object] = (
        {"by_range": False} if complete else {"by_range": False, "moved_exactly": None}
    )
    if stayed:
        changes |= {
            "state": SliceState.PLANNED,
            "size": len(stayed),
            "count_before": None,
            "added_before": None,
        }
        back = ReplayItem.objects.filter(pk__in=[item for item, _ in stayed], state=ItemState.GIVEN_BACK)
        number = back.update(state=ItemState.PLANNED, state_at=now)
        letters = DeadLetter.objects.filter(pk__in=[letter for _, letter in stayed])
        letters.update(state=LetterState.DEAD, state_at=now)
        counts.add_counts(job.pk, {ItemState.PLANNED: number, ItemState.GIVEN_BACK: -number})
    ReplaySlice.objects.filter(pk=piece.pk).update(**changes)
    results.conclude(job, piece.pk, now)
    settlement.settle(settlement.cases_of(late), now, locked=locked)
