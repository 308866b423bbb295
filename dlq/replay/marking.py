"""Writing down what became of the letters of a slice: item, letter and counts in one transaction, each once.

Everything is conditional: of two workers that tell the same slice one changes its rows. A kill before the commit leaves
the slice as it was, and the figures or a walk tell it again.
"""

from collections.abc import Sequence
from datetime import datetime

from django.db import transaction

from dlq import crash
from dlq.models import DeadLetter, ItemState, LetterState, ReplayItem, ReplayJob, ReplaySlice, SliceState
from dlq.replay import counting
from dlq.replay.hooks import hooks_of
from dlq.replay.routes import afterwards

# A letter that another look at the queue saw missing meanwhile left it all the same by this move.
LEAVING = (LetterState.DEAD, LetterState.GONE)
# Why a letter is stuck whose copy went: giving it back once more would bring it twice.
COPY_SENT = "copy_sent"


def all_left(job: ReplayJob, piece: ReplaySlice, now: datetime) -> None:
    """The figures say so: as many letters left as the slice holds."""
    with transaction.atomic():
        fresh = ReplaySlice.objects.filter(pk=piece.pk).exclude(state=SliceState.CHECKED)
        if not fresh.update(state=SliceState.CHECKED, checked_at=now, left=piece.size, moved=piece.moved):
            return
        planned = ReplayItem.objects.filter(slice=piece, state=ItemState.PLANNED)
        hooks = hooks_of(job.action)
        ids = list(planned.values_list("pk", flat=True)) if hooks else []
        number = planned.update(state=ItemState.GIVEN_BACK, state_at=now)
        given_back = ReplayItem.objects.filter(slice=piece, state=ItemState.GIVEN_BACK)
        letters = DeadLetter.objects.filter(pk__in=given_back.values("letter"), state__in=LEAVING)
        letters.update(state=afterwards(job.action), state_at=now)
        if hooks:
            hooks.after_check(ids, now)
        crash.point("checking")
        counting.add(job.pk, {ItemState.PLANNED: -number, ItemState.GIVEN_BACK: number})
    crash.point("checked")


def left(job: ReplayJob, items: Sequence[int], now: datetime, why: str = "") -> None:
    """These items' letters left by a move of ours. Call it in a transaction."""
    ids = _change(job, items, ItemState.GIVEN_BACK, why, now)
    _letters(ids, LEAVING, afterwards(job.action), now)
    if ids and (hooks := hooks_of(job.action)):
        hooks.after_check(ids, now)


def missing(job: ReplayJob, items: Sequence[int], now: datetime) -> None:
    """These items' letters were gone before the move: they expired, or somebody else took them. What was done for them
    already is done."""
    committed, items = _committed(job, items)
    left(job, committed, now, "gone")
    ids = _change(job, items, ItemState.NOT_FOUND, "gone", now)
    _letters(ids, (LetterState.DEAD,), LetterState.GONE, now)


def stuck(job: ReplayJob, items: Sequence[int], now: datetime, why: str = "stuck") -> None:
    """They stay where they are, and nobody tries again."""
    committed, items = _committed(job, items)
    _change(job, committed, ItemState.FAILED_TO_MOVE, COPY_SENT, now)
    _change(job, items, ItemState.FAILED_TO_MOVE, why, now)


def cancelled(job: ReplayJob, items: Sequence[int], now: datetime) -> None:
    _change(job, items, ItemState.CANCELLED, "", now)


def _committed(job: ReplayJob, items: Sequence[int]) -> tuple[list[int], list[int]]:
    """Those for which something was done that cannot be taken back, and the others."""
    hooks = hooks_of(job.action)
    committed = hooks.committed(items) if hooks and items else []
    return committed, [item for item in items if item not in frozenset(committed)]


def _change(job: ReplayJob, items: Sequence[int], state: ItemState, why: str, now: datetime) -> list[int]:
    if not items:
        return []
    planned = ReplayItem.objects.select_for_update().filter(pk__in=items, state=ItemState.PLANNED)
    ids = list(planned.order_by("pk").values_list("pk", flat=True))
    ReplayItem.objects.filter(pk__in=ids).update(state=state, why=why, state_at=now)
    counting.add(job.pk, {ItemState.PLANNED: -len(ids), state: len(ids)})
    return ids


def _letters(items: Sequence[int], states: Sequence[LetterState], state: LetterState, now: datetime) -> None:
    letters = ReplayItem.objects.filter(pk__in=items).values("letter")
    DeadLetter.objects.filter(pk__in=letters, state__in=states).update(state=state, state_at=now)
