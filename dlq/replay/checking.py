"""What left the queue: by its figures where they are clear, by a walk of it where they are not."""

from datetime import datetime, timedelta
from itertools import pairwise

from django.db import transaction
from django.db.models import F, Max, Min
from django.utils import timezone

from dlq import crash
from dlq.letter_queues import LetterQueues
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
from dlq.replay import agreement, counting, joining, marking, planning
from dlq.replay.leases import hold
from dlq.replay.planning import Figures, Present, Told

UNCERTAIN = "uncertain"
# How long the end of a job waits for the feed: what died during the moves may lie in their ranges.
FEED_PATIENCE = timedelta(seconds=10)
FEED_LOOK = timedelta(seconds=0.5)


def to_be_walked(piece: ReplaySlice, left: int | None) -> None:
    """A walk has to look what left; `left`: how many did, None where nobody knows."""
    unchecked = ReplaySlice.objects.filter(pk=piece.pk).exclude(state=SliceState.CHECKED)
    unchecked.update(state=SliceState.MOVED, left=left, moved=piece.moved)


def on_the_way(job: ReplayJob) -> list[ReplaySlice]:
    """Slices of which a worker began the move and did not live to write down what left."""
    begun = job.slices.filter(state=SliceState.PLANNED, count_before__isnull=False)
    return list(begun.order_by("number"))


def recover(job: ReplayJob) -> bool:
    """Tells the slices that a dead worker left on the way; whether there was one to tell.

    It had at most two. Of the first one it knew that all left, before it began the second: the figures say the same. Of
    the second it knew nothing: that one is moved once more, which moves nothing twice, and told by the figures before
    its first try. A job that is over moves nothing any more: a walk tells."""
    begun = on_the_way(job)
    for piece, following in pairwise(begun):
        left = planning.left_by(figures_before(piece), figures_before(following))
        if planning.told(piece.size, left, None) is Told.GONE:
            marking.all_left(job, piece, timezone.now())
        else:
            to_be_walked(piece, None)
    if begun and job.state not in OPEN_JOBS:
        to_be_walked(begun.pop(), None)
        return True
    return len(begun) > 1


def figures_before(piece: ReplaySlice) -> Figures:
    """Of a slice on the way: before its first try of which nobody knows what it moved."""
    return Figures(count=piece.count_before or 0, added=piece.added_before or 0)


def again(piece: ReplaySlice) -> None:
    """To be moved once more: nothing of it left. With as many tries as it had."""
    begun = ReplaySlice.objects.filter(pk=piece.pk, state=SliceState.PLANNED)
    begun.update(count_before=None, added_before=None)


# -- by a walk ------------------------------------------------------------------------------------------------------


def walk_moved(job: ReplayJob, queues: LetterQueues) -> bool:
    """Walks the queue once and tells every slice that its figures did not tell; whether there were any."""
    pieces = job.slices.filter(state=SliceState.MOVED).order_by("number")
    if not pieces.exists():
        return False
    present = _present(job, queues)
    if present is not None:
        crash.point("walked")
        for piece in pieces.iterator(chunk_size=100):
            _judge(job, piece, present, timezone.now())
            crash.point("judged")
    return True


def _present(job: ReplayJob, queues: LetterQueues) -> Present | None:
    return agreement.present(job.source_queue, queues, lambda: hold(job, timezone.now()))


@transaction.atomic
def _judge(job: ReplayJob, piece: ReplaySlice, present: Present, now: datetime) -> None:
    """What may have expired comes first: of letters that are gone without our move it is the likely one."""
    waiting = piece.items.filter(state=ItemState.PLANNED)
    ordered = waiting.order_by(F("letter__expires_at").asc(nulls_last=True), "pk")
    items = list(ordered.values_list("pk", "letter__orig_message_id"))
    verdict = planning.judge(items, present, piece.tries, piece.left)
    marking.left(job, verdict.left, now, UNCERTAIN if verdict.uncertain else "")
    marking.missing(job, verdict.missing, now)
    marking.stuck(job, verdict.stuck, now)
    if piece.by_range:
        strangers(job, piece, present, now)
    changes = {"state": SliceState.CHECKED, "checked_at": now, "by_range": False}
    if verdict.again:
        changes = {"state": SliceState.PLANNED, "by_range": False, "size": len(verdict.again)}
        changes |= {"count_before": None, "added_before": None, "left": None}
    ReplaySlice.objects.filter(pk=piece.pk).update(**changes)
    joining.settle(joining.cases_of(verdict.left), now)


def strangers(job: ReplayJob, piece: ReplaySlice, present: Present, now: datetime) -> None:
    """Letters that died after the planning with ids inside of a range, and that its move took along: they went where
    the others went, and get an item that says so. Call it in a transaction."""
    late = DeadLetter.objects.filter(
        queue=job.source_queue,
        state=LetterState.DEAD,
        pk__gt=job.letters_up_to or 0,
        orig_message_id__range=(piece.first_number, piece.last_number),
    )
    rows = list(late.exclude(replays__job=job).values_list("pk", "orig_message_id"))
    taken = [pk for pk, number in rows if number not in present]
    made = [ReplayItem(job=job, letter_id=pk, slice=piece, state_at=now, why="late") for pk in taken]
    ReplayItem.objects.bulk_create(made, ignore_conflicts=True)
    items = list(piece.items.filter(letter__in=taken, state=ItemState.PLANNED).values_list("pk", flat=True))
    if items:
        counting.add(job.pk, {ItemState.PLANNED: len(items)})
        marking.left(job, items, now, "late")
        ReplayJob.objects.filter(pk=job.pk).update(total=F("total") + len(items))
        joining.settle(joining.cases_of(items), now)


# -- ranges, at the end ---------------------------------------------------------------------------------------------


def has_ranges(job: ReplayJob) -> bool:
    """Whether ranges were moved of which nobody looked yet whether late letters lay in them."""
    return job.slices.filter(state=SliceState.CHECKED, by_range=True).exists()


def feed_took_too_long(job: ReplayJob, now: datetime) -> bool:
    last = job.slices.aggregate(last=Max("moved_at"))["last"]
    return last is None or now - last > FEED_PATIENCE


def late_in_ranges(job: ReplayJob) -> bool:
    """Whether letters died since the planning with ids inside of a range that was moved. One may have gone in place of
    a letter of the scope: the figures would not show it."""
    ranges = job.slices.filter(state=SliceState.CHECKED, by_range=True)
    ends = ranges.aggregate(first=Min("first_number"), last=Max("last_number"))
    if ends["first"] is None:
        return False
    late = DeadLetter.objects.filter(
        queue=job.source_queue,
        state=LetterState.DEAD,
        pk__gt=job.letters_up_to or 0,
        orig_message_id__range=(ends["first"], ends["last"]),
    )
    return late.exists()


def ranges_told(job: ReplayJob, queues: LetterQueues) -> bool | None:
    """Whether what the ranges took along is known: looked at now where it has to be. None: not before the feed has
    brought what died meanwhile."""
    if not has_ranges(job):
        return True
    behind = not queues.feed_is_empty()
    if behind and not feed_took_too_long(job, timezone.now()):
        return None
    if behind or late_in_ranges(job):
        walk_ranges(job, queues)
        return False
    # What dies from now on was not there when they moved: nothing of them is asked again.
    job.slices.filter(state=SliceState.CHECKED, by_range=True).update(by_range=False)
    return True


def walk_ranges(job: ReplayJob, queues: LetterQueues) -> None:
    """Looks for letters of the scope that stayed because a late one went instead; they are moved again, by ids."""
    present = _present(job, queues)
    if present is None:
        return
    for piece in job.slices.filter(state=SliceState.CHECKED, by_range=True).order_by("number").iterator(100):
        _look_again(job, piece, present, timezone.now())


@transaction.atomic
def _look_again(job: ReplayJob, piece: ReplaySlice, present: Present, now: datetime) -> None:
    strangers(job, piece, present, now)
    items = piece.items.filter(state=ItemState.GIVEN_BACK).values_list("pk", "letter", "letter__orig_message_id")
    stayed = [(item, letter) for item, letter, number in items if number in present]
    changes: dict[str, object] = {"by_range": False}
    if stayed:
        changes |= {"state": SliceState.PLANNED, "size": len(stayed), "count_before": None, "added_before": None}
        back = ReplayItem.objects.filter(pk__in=[item for item, _ in stayed], state=ItemState.GIVEN_BACK)
        number = back.update(state=ItemState.PLANNED, state_at=now)
        letters = DeadLetter.objects.filter(pk__in=[letter for _, letter in stayed])
        letters.update(state=LetterState.DEAD, state_at=now)
        counting.add(job.pk, {ItemState.PLANNED: number, ItemState.GIVEN_BACK: -number})
    ReplaySlice.objects.filter(pk=piece.pk).update(**changes)
