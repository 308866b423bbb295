"""How the letters of a job are cut into moves, and what the figures of a queue say of a move. Pure.

Every step may be repeated after a crash: a slice names its letters by ids of one death each, so moving it again finds
nothing that was moved before. What left is told by exact figures of the queue, by a walk of it where they disagree.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from broker.letters import FLUSH, NAMED, SLICE

# One move, and one transaction of the broker: management holds a lock of it all meanwhile. Of a range it compares each
# letter twice, of ids about as often as these can be halved.
RANGE_SLICE = FLUSH
# One move of ids that lie far apart.
NAMED_SLICE = NAMED
# A letter that stays although its slice was moved so often cannot be moved.
MOST_TRIES = 3


@dataclass(frozen=True, slots=True)
class Candidate:
    """A letter of the scope, by its row and by its id at the broker."""

    letter: int
    number: int


@dataclass(frozen=True, slots=True)
class Figures:
    """Of a queue: how many messages it holds, and how many were ever added since the broker started."""

    count: int
    added: int


class Present(Protocol):
    """The ids that a walk saw."""

    def __contains__(self, number: int, /) -> bool: ...

    def within(self, first: int, last: int) -> int:
        """How many lie between the two, both inclusive."""
        ...


class Told(Enum):
    GONE = "gone"
    STAYED = "stayed"
    UNCLEAR = "unclear"


@dataclass(frozen=True, slots=True)
class Verdict:
    """`left` went where they should, `missing` are gone but this move did not take them, `uncertain` of them are among
    `left` by number only, `again` are to be moved once more, `stuck` stay."""

    left: tuple[int, ...]
    missing: tuple[int, ...]
    again: tuple[int, ...]
    stuck: tuple[int, ...]
    uncertain: bool = False


def chunks(letters: Sequence[Candidate], largest: int, rooms: Iterator[int] | None = None) -> Iterator[list[Candidate]]:
    """In the order of their ids, at most `largest` together; `rooms` says for each chunk how many more it may hold."""
    ordered, start = sorted(letters, key=lambda letter: letter.number), 0
    while start < len(ordered):
        size = max(1, min(largest, next(rooms) if rooms else largest))
        yield ordered[start : start + size]
        start += size


def by_ids(letters: Sequence[Candidate], largest: int | None = None) -> Iterator[Sequence[Candidate]]:
    """Letters between whose first and last id lie others: slices that name each letter, `largest` (SLICE) at most."""
    size = largest or SLICE
    for start in range(0, len(letters), size):
        yield letters[start : start + size]


def left_by(before: Figures, after: Figures) -> int | None:
    """How many messages left the queue between the two. None: nobody knows, for the broker was restarted and counts
    anew. One that was restarted has added as many as it holds: of what left before it knows nothing."""
    left = before.count + (after.added - before.added) - after.count
    return None if after.added < before.added or left < 0 else left


def told(size: int, left: int | None, moved: int | None) -> Told:
    """What the figures say of a slice that was moved between them, `left` by them. `moved` is the broker's word of that
    one move, None where an earlier try may have moved some of the letters.

    With its word for all of them, more may have left (others expired meanwhile), but not fewer. Without it, a move that
    came to its end is between the figures too: no letter of the slice that was there then is in the queue."""
    if left is None:
        return Told.UNCLEAR
    if moved is None:
        return Told.GONE if left == size else Told.UNCLEAR
    if moved == size:
        return Told.GONE if left >= size else Told.UNCLEAR
    return Told.STAYED if left == moved == 0 else Told.UNCLEAR


def judge(items: Sequence[tuple[int, int]], present: Present, tries: int, left: int | None) -> Verdict:
    """By a walk: `items` are (item, id at the broker), those that may have expired first; `present` are ids that lie in
    the queue still; `left` is how many messages the figures saw leaving, None where nobody knows."""
    stayed = tuple(item for item, number in items if number in present)
    gone = tuple(item for item, number in items if number not in present)
    missing = 0 if left is None else max(0, len(gone) - max(0, left))
    return Verdict(
        left=gone[missing:],
        missing=gone[:missing],
        again=stayed if tries < MOST_TRIES else (),
        stuck=stayed if tries >= MOST_TRIES else (),
        uncertain=0 < missing < len(gone),
    )
