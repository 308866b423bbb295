"""Writing down what became of the dead letters of a slice: item, dead letter and counts in one transaction,
each once.

Everything is conditional: of two workers that tell the same slice one changes its rows. A kill before the
commit leaves the slice as it was, and the figures or a walk tell it again. Whoever calls one of these in a
transaction of its own has locked the job first (`counts.lock`).
"""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from django.db import transaction
from django.db.models import Count, Exists, F, OuterRef, Q

from console.jobs import crash
from dlq.hooks import hooks_of
from dlq.models import (
    DeadLetter,
    ItemState,
    LetterState,
    Outcome,
    ReplayItem,
    ReplayJob,
    ReplaySlice,
    SliceState,
)
from dlq.models.replay import afterwards
from dlq.replay import counts as counting
from dlq.replay.rules import slices
from dlq.replay.rules.slices import Mover

# A dead letter that another look at the queue saw missing meanwhile left it all the same by this move.
LEAVING = (LetterState.DEAD, LetterState.GONE)
# Why a dead letter is stuck whose copy went: giving it back once more would bring it twice.
COPY_SENT = "copy_sent"


def all_left(job: ReplayJob, piece: ReplaySlice, now: datetime) -> None:
    """Marks all as left by our moves, as the broker answered and the figures say."""
    with transaction.atomic():
        counting.lock([job.pk])
        if not _check(piece, now):
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
        counting.add_counts(job.pk, {ItemState.PLANNED: -number, ItemState.GIVEN_BACK: number})
    crash.point("checked")


def all_unconfirmed(job: ReplayJob, piece: ReplaySlice, now: datetime) -> None:
    """They left, and the answer that would say by whom was lost."""
    with transaction.atomic():
        counting.lock([job.pk])
        if _check(piece, now):
            items = ReplayItem.objects.filter(slice=piece, state=ItemState.PLANNED)
            unconfirmed(job, list(items.values_list("pk", flat=True)), now)
            crash.point("checking")
    crash.point("checked")


def _check(piece: ReplaySlice, now: datetime) -> int:
    fresh = ReplaySlice.objects.filter(pk=piece.pk).exclude(state=SliceState.CHECKED)
    exactly = F("moved_exactly") + (piece.moved or 0)
    return fresh.update(
        state=SliceState.CHECKED, checked_at=now, left=piece.size, moved=piece.moved, moved_exactly=exactly
    )


def left(job: ReplayJob, items: Sequence[int], now: datetime, why: str = "") -> None:
    """These items' dead letters left by a move of ours. Call it in a transaction."""
    ids = _change(job.pk, items, ItemState.GIVEN_BACK, why, now)
    _letters(ids, LEAVING, afterwards(job.action), now)
    if ids and (hooks := hooks_of(job.action)):
        hooks.after_check(ids, now)


def unconfirmed(job: ReplayJob, items: Sequence[int], now: datetime, why: str = "") -> None:
    """These items' dead letters are gone, perhaps by a move of ours. What a KMA reported of them is proof
    already. Call it in a transaction."""
    committed, items = _committed(job, items)
    left(job, committed, now, why)
    proved = ReplayItem.objects.filter(pk__in=items).exclude(outcome__in=(Outcome.WAITING, Outcome.UNKNOWN))
    left(job, list(proved.values_list("pk", flat=True)), now, why)
    ids = _change(job.pk, items, ItemState.UNCONFIRMED, why, now)
    _letters(ids, (LetterState.DEAD,), LetterState.GONE, now)


def not_ours(job: ReplayJob, items: Sequence[int], now: datetime, *, seen_before: bool = True) -> None:
    """No move of ours took the dead letters of these unconfirmed items: another consumer did, or they
    expired, or they lie in their queue again. One that planning had not seen may have been gone before. What
    was done for them already is done. Their dead letters stay as the index has them. Call it in a
    transaction."""
    committed, items = _committed(job, items)
    left(job, committed, now, "gone")
    expired = ReplayItem.objects.filter(pk__in=items, letter__expires_at__lte=now)
    lost = list(items if not seen_before else expired.values_list("pk", flat=True))
    open_ = (ItemState.PLANNED, ItemState.UNCONFIRMED)
    gone = _change(job.pk, lost, ItemState.NOT_FOUND, "gone", now, open_)
    taken = _change(job.pk, items, ItemState.TAKEN_ELSEWHERE, None, now, open_)
    _forget_outcomes(job.pk, [*gone, *taken])


def confirmed(job: ReplayJob, items: Sequence[int], now: datetime) -> None:
    """Marks what was unconfirmed and then seen or reported where our move brought it. Call it in a
    transaction."""
    # A dead letter that came back to its queue, and that another job has meanwhile, is that one's.
    others = ReplayItem.objects.filter(letter=OuterRef("letter"), released_as="").exclude(pk=OuterRef("pk"))
    free = ReplayItem.objects.filter(~Exists(others), pk__in=items)
    ids = _change(
        job.pk,
        list(free.values_list("pk", flat=True)),
        ItemState.GIVEN_BACK,
        None,
        now,
        (ItemState.UNCONFIRMED,),
    )
    _letters(ids, LEAVING, afterwards(job.action), now)


def doubted(job: ReplayJob, items: Sequence[int], now: datetime) -> None:
    """More left than our moves took: of these items it is not known any more that they went. Call it in a
    transaction."""
    silent = ReplayItem.objects.filter(pk__in=items, outcome__in=(Outcome.WAITING, Outcome.UNKNOWN))
    ids = _change(
        job.pk,
        list(silent.values_list("pk", flat=True)),
        ItemState.UNCONFIRMED,
        None,
        now,
        (ItemState.GIVEN_BACK,),
    )
    _letters(ids, (afterwards(job.action),), LetterState.GONE, now)


def stuck(job: ReplayJob, items: Sequence[int], now: datetime, why: str = "stuck") -> None:
    """They stay where they are, and nobody tries again."""
    committed, items = _committed(job, items)
    _change(job.pk, committed, ItemState.FAILED_TO_MOVE, COPY_SENT, now)
    _change(job.pk, items, ItemState.FAILED_TO_MOVE, why, now)


def cancelled(job: ReplayJob, items: Sequence[int], now: datetime) -> None:
    _change(job.pk, items, ItemState.CANCELLED, "", now)


def _committed(job: ReplayJob, items: Sequence[int]) -> tuple[list[int], list[int]]:
    """Those for which something was done that cannot be taken back, and the others."""
    hooks = hooks_of(job.action)
    committed = hooks.committed(items) if hooks and items else []
    return committed, [item for item in items if item not in frozenset(committed)]


def _change(
    job: UUID,
    items: Sequence[int],
    state: ItemState,
    why: str | None,
    now: datetime,
    before: Sequence[ItemState] = (ItemState.PLANNED,),
) -> list[int]:
    """Those of the items that were in a state of `before`; they are in `state` now. `why` None: it stays."""
    if not items:
        return []
    found = ReplayItem.objects.select_for_update().filter(pk__in=items, state__in=before)
    rows = list(found.order_by("pk").values_list("pk", "state"))
    ids = [pk for pk, _ in rows]
    reason = {} if why is None else {"why": why}
    ReplayItem.objects.filter(pk__in=ids).update(state=state, state_at=now, **reason)
    counts: dict[str, int] = {each: -sum(1 for _, was in rows if was == each) for each in before}
    counting.add_counts(job, counts | {state: len(ids)})
    return ids


def _forget_outcomes(job: UUID, items: Sequence[int]) -> None:
    """Forgets outcomes of dead letters that were not ours: what is known of an equal message was taken for
    theirs."""
    told = ReplayItem.objects.filter(~Q(outcome=Outcome.WAITING), pk__in=items)
    counts = dict(told.order_by().values_list("outcome").annotate(Count("pk")))
    if counts:
        told.update(outcome=Outcome.WAITING, outcome_at=None, died_as=None)
        counting.add_counts(job, {outcome: -number for outcome, number in counts.items()})


def _letters(items: Sequence[int], states: Sequence[LetterState], state: LetterState, now: datetime) -> None:
    letters = ReplayItem.objects.filter(pk__in=items).values("letter")
    DeadLetter.objects.filter(pk__in=letters, state__in=states).update(state=state, state_at=now)


# -- dead letters of a slice that are gone: how many our moves took, and how many of these are known ---------


def conclude(job: ReplayJob, slice_id: int, now: datetime) -> None:
    """Confirms what is unconfirmed in the slice, or says that others took it, where the numbers leave nothing
    else. Call it in a transaction, after whatever changed its items. A kill before the commit: whatever
    changes them next concludes the same."""
    piece = ReplaySlice.objects.select_for_update().get(pk=slice_id)
    given_back = _items(piece, ItemState.GIVEN_BACK)
    # The copy of an edited dead letter went, whoever took the original: its number is no number of moves.
    if (
        piece.moved_exactly is not None
        and len(given_back) > piece.moved_exactly
        and hooks_of(job.action) is None
    ):
        doubted(job, given_back, now)
        given_back = _items(piece, ItemState.GIVEN_BACK)
    open_ = _items(piece, ItemState.UNCONFIRMED)
    if not open_:
        return
    mover = slices.mover_of(piece.moved_exactly, len(given_back), len(open_))
    if mover is Mover.OURS:
        confirmed(job, open_, now)
    elif mover is Mover.OTHERS:
        not_ours(job, open_, now, seen_before=piece.seen_before)


def _items(piece: ReplaySlice, state: ItemState) -> list[int]:
    return list(
        ReplayItem.objects.filter(slice=piece, state=state).order_by("pk").values_list("pk", flat=True)
    )
