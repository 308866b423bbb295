"""Who took the letters of a slice that are gone, by how many our moves took and how many of these are
known."""

from datetime import datetime

from dlq.models import ItemState, ReplayItem, ReplayJob, ReplaySlice
from dlq.replay import marking, planning
from dlq.replay.hooks import hooks_of
from dlq.replay.planning import Mover


def conclude(job: ReplayJob, slice_id: int, now: datetime) -> None:
    """Confirms what is unconfirmed in the slice, or says that others took it, where the numbers leave nothing
    else. Call it in a transaction, after whatever changed its items. A kill before the commit: whatever
    changes them next concludes the same."""
    piece = ReplaySlice.objects.select_for_update().get(pk=slice_id)
    given_back = _items(piece, ItemState.GIVEN_BACK)
    # The copy of an edited letter went, whoever took the original: its number is no number of moves.
    if (
        piece.moved_exactly is not None
        and len(given_back) > piece.moved_exactly
        and hooks_of(job.action) is None
    ):
        marking.doubted(job, given_back, now)
        given_back = _items(piece, ItemState.GIVEN_BACK)
    open_ = _items(piece, ItemState.UNCONFIRMED)
    if not open_:
        return
    mover = planning.mover_of(piece.moved_exactly, len(given_back), len(open_))
    if mover is Mover.OURS:
        marking.confirmed(job, open_, now)
    elif mover is Mover.OTHERS:
        marking.not_ours(job, open_, now, seen_before=piece.seen_before)


def _items(piece: ReplaySlice, state: ItemState) -> list[int]:
    return list(
        ReplayItem.objects.filter(slice=piece, state=state).order_by("pk").values_list("pk", flat=True)
    )
