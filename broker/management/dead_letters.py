"""Moving, deleting and counting dead letters by the ids that they had before. Over any `Management`."""

from collections.abc import Sequence

from broker.port import Management
from contract.names import ORIG_MESSAGE_ID, ORIG_QUEUE

# Ids per operation: each is one scan of the queue under a lock of the whole broker, so neither many nor long
# ones.
SLICE = 500
# Messages that the broker moves or removes in one transaction.
FLUSH = 1000
# Ids of one move: it scans the queue from its head, past everything that stays, so fewer moves read far less.
# Each transaction of it is whole; which of them came to their end the figures of the queue tell, or a walk.
NAMED = 4 * FLUSH
# Ids that are compared one by one.
FEW = 4


def move_dead_letters(
    management: Management, dead_letter_queue: str, orig_ids: Sequence[int], target_queue: str
) -> int:
    """Moves the letters with these `_AMQ_ORIG_MESSAGE_ID` to that queue, which alone gets them.

    Returns what the broker says it moved: for logs only, what is gone from the queue is the truth. Doing it
    again is harmless, the ids are of one death only.
    """
    moved = 0
    for start in range(0, len(orig_ids), NAMED):
        ids = orig_ids[start : start + NAMED]
        moved += _move(management, dead_letter_queue, _named(ids), target_queue, len(ids))
    return moved


def move_dead_letters_until(
    management: Management, dead_letter_queue: str, last_id: int, target_queue: str, count: int
) -> int:
    """Moves at most `count` of the letters up to that `_AMQ_ORIG_MESSAGE_ID`; returns what the broker
    says."""
    return _move(management, dead_letter_queue, f"{ORIG_MESSAGE_ID} <= {int(last_id)}", target_queue, count)


def move_id_range(management: Management, source: str, first: int, last: int, target: str, count: int) -> int:
    """Moves at most `count` of the letters with a `_AMQ_ORIG_MESSAGE_ID` from `first` to `last`, both
    inclusive."""
    selector = f"{ORIG_MESSAGE_ID} >= {int(first)} AND {ORIG_MESSAGE_ID} <= {int(last)}"
    return _move(management, source, selector, target, count)


def move_of_queue(management: Management, source: str, origin: str, target: str, count: int) -> int:
    """Moves at most `count` of the letters that died in the queue `origin`, the first ones that the broker
    finds."""
    quoted = origin.replace("'", "''")
    return _move(management, source, f"{ORIG_QUEUE} = '{quoted}'", target, count)


def delete_dead_letters(management: Management, queue: str, origin: str, orig_ids: Sequence[int]) -> int:
    """Removes for good the letters with these `_AMQ_ORIG_MESSAGE_ID` that were in the queue `origin` before;
    returns what the broker says. Doing it again is harmless."""
    quoted, removed = origin.replace("'", "''"), 0
    for start in range(0, len(orig_ids), SLICE):
        selector = f"{ORIG_QUEUE} = '{quoted}' AND {_named(orig_ids[start : start + SLICE])}"
        removed += int(management.call(f"queue.{queue}", "removeMessages", FLUSH, selector))
    return removed


def count_dead_letters(management: Management, queue: str, origin: str, orig_ids: Sequence[int]) -> int:
    """How many of these lie there still, also those that somebody was given and has not answered."""
    quoted, found = origin.replace("'", "''"), 0
    for start in range(0, len(orig_ids), SLICE):
        selector = f"{ORIG_QUEUE} = '{quoted}' AND {_named(orig_ids[start : start + SLICE])}"
        found += int(management.call(f"queue.{queue}", "countMessages", selector))
    return found


def _named(ids: Sequence[int]) -> str:
    """The ends first: of most letters nothing else is compared. Those between are halved again and again: as
    few comparisons as a binary search has, where a list of ids would be compared one by one."""
    ordered = sorted({int(orig_id) for orig_id in ids})
    between = f"{ORIG_MESSAGE_ID} >= {ordered[0]} AND {ORIG_MESSAGE_ID} <= {ordered[-1]}"
    return f"{between} AND {_one_of(ordered)}"


def _one_of(ordered: Sequence[int]) -> str:
    if len(ordered) <= FEW:
        return f"({' OR '.join(f'{ORIG_MESSAGE_ID} = {orig_id}' for orig_id in ordered)})"
    half = len(ordered) // 2
    lower, upper = ordered[:half], ordered[half:]
    here = f"{ORIG_MESSAGE_ID} < {upper[0]}"
    return f"({here} AND {_one_of(lower)} OR {ORIG_MESSAGE_ID} >= {upper[0]} AND {_one_of(upper)})"


def _move(management: Management, source: str, selector: str, target: str, count: int) -> int:
    if count < 1:
        raise ValueError("0 would move every message of the queue")
    return int(management.call(f"queue.{source}", "moveMessages", FLUSH, selector, target, False, count))
