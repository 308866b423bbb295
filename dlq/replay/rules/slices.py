"""Decides how the dead letters of a job are cut into moves, what the figures of a queue say of a move, and
how fast they go. Pure.

Every step may be repeated after a crash: a slice names its dead letters by ids of one death each, so
moving it again finds nothing that was moved before. What left is told by exact figures of the queue, by a
walk of it where they disagree.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum, auto
from typing import Protocol

from broker.management.dead_letters import FLUSH, NAMED, SLICE

# One move, and one transaction of the broker: management holds a lock of it all meanwhile. Of a range it
# compares each dead letter twice, of ids about as often as these can be halved.
RANGE_SLICE = FLUSH
# One move of ids that lie far apart.
NAMED_SLICE = NAMED
# Operations of one slice beside other consumers of the queue.
MOST_PARTS = 100
# A dead letter that stays although its slice was moved so often cannot be moved.
MOST_TRIES = 3


@dataclass(frozen=True, slots=True)
class Candidate:
    """A dead letter of the scope, by its row and by its id at the broker."""

    letter: int
    number: int


@dataclass(frozen=True, slots=True)
class Figures:
    """Figures of a queue: how many messages it holds, how many were ever added since the broker started, and
    how many consumers it has now."""

    count: int
    added: int
    consumers: int = field(default=0, compare=False)


class Present(Protocol):
    """The ids that a walk saw."""

    def __contains__(self, number: int, /) -> bool: ...

    def within(self, first: int, last: int) -> int:
        """Returns how many lie between the two, both inclusive."""
        ...


class SliceResult(Enum):
    """GONE: all were moved by us. LEFT: all left, but nobody knows by whom."""

    GONE = auto()
    LEFT = auto()
    STAYED = auto()
    UNCLEAR = auto()


class Mover(Enum):
    """Says who took dead letters that are gone."""

    OURS = auto()
    OTHERS = auto()
    UNCLEAR = auto()


@dataclass(frozen=True, slots=True)
class Verdict:
    """`gone` are not in the queue, `again` are to be moved once more, `held` are in delivery to another
    consumer and looked for later, `stuck` stay."""

    gone: tuple[int, ...]
    again: tuple[int, ...]
    held: tuple[int, ...]
    stuck: tuple[int, ...]


def chunks(
    letters: Sequence[Candidate], largest: int, rooms: Iterator[int] | None = None
) -> Iterator[list[Candidate]]:
    """Yields them in the order of their ids, at most `largest` together; `rooms` says for each chunk how many
    more it may hold."""
    ordered, start = sorted(letters, key=lambda letter: letter.number), 0
    while start < len(ordered):
        size = max(1, min(largest, next(rooms) if rooms else largest))
        yield ordered[start : start + size]
        start += size


def in_publishing_order(letters: Sequence[Candidate], firsts: Mapping[int, int]) -> list[Candidate]:
    """`firsts`: by the row of a dead letter, the first id at the broker that is known of its message. Ids
    only grow, and a message has its first one when it is published; each death and each move gives another
    one."""
    return sorted(letters, key=lambda letter: (firsts.get(letter.letter, letter.number), letter.number))


def by_ids(letters: Sequence[Candidate], largest: int | None = None) -> Iterator[Sequence[Candidate]]:
    """Dead letters between whose first and last id lie others: slices that name each dead letter, `largest`
    (SLICE) at most."""
    size = largest or SLICE
    for start in range(0, len(letters), size):
        yield letters[start : start + size]


def left_by(before: Figures, after: Figures) -> int | None:
    """Returns how many messages left the queue between the two. None: nobody knows, for the broker was
    restarted and counts anew. One that was restarted has added as many as it holds: of what left before it
    knows nothing."""
    left = before.count + (after.added - before.added) - after.count
    return None if after.added < before.added or left < 0 else left


def slice_result(size: int, left: int | None, moved: int | None, *, first: bool) -> SliceResult:
    """Returns what a move and the figures around it say of a slice: `left` by the figures since its first
    try, `moved` by the broker's answer to the last one, None where it did not answer. `first`: no try before
    it was left unanswered.

    A move names the dead letters of its slice and no other. With an answer for all of them, each was moved by
    us: more may have left (others took them), but not fewer. What left says nothing of who took it: without
    such an answer they only left, where the figures lost as many and none of them was there for a move that
    came to its end."""
    if left is None or moved is None:
        return SliceResult.UNCLEAR
    if moved == size:
        return SliceResult.GONE if left >= size else SliceResult.UNCLEAR
    if not first:
        return SliceResult.LEFT if left == size else SliceResult.UNCLEAR
    return SliceResult.STAYED if left == moved == 0 else SliceResult.UNCLEAR


def judge_slice(
    items: Sequence[tuple[int, int]], present: Present, held: frozenset[int], tries: int, *, patient: bool
) -> Verdict:
    """Judges by a walk: `items` are (item, id at the broker); `present` are ids that lie in the queue still,
    of these `held` in delivery to another consumer. `patient`: such a consumer has time still to take them or
    to let go of them."""
    stayed = [(item, number) for item, number in items if number in present]
    waits = tuple(item for item, number in stayed if number in held) if patient else ()
    rest = tuple(item for item, number in stayed if not patient or number not in held)
    return Verdict(
        gone=tuple(item for item, number in items if number not in present),
        again=rest if tries < MOST_TRIES else (),
        held=waits,
        stuck=rest if tries >= MOST_TRIES else (),
    )


def mover_of(moved: int | None, confirmed: int, open_: int) -> Mover:
    """Returns who took the `open_` dead letters of a slice that are gone, where our moves took `moved` of all
    that are gone and `confirmed` of these are known. `moved` None: a move was not answered. More moved than
    are gone: something is not known yet (a dead letter that died late, a broker that forgot a move)."""
    if moved is None:
        return Mover.UNCLEAR
    rest = moved - confirmed
    if rest <= 0:
        return Mover.OTHERS
    return Mover.OURS if rest == open_ else Mover.UNCLEAR


def parts_of(numbers: Sequence[int], *, alone: bool) -> Iterator[Sequence[int]]:
    """Ids of one operation each. While others consume from the queue they are few (`alone` False): what a
    short part leaves open is little then."""
    size = NAMED if alone else max(1, -(-len(numbers) // MOST_PARTS))
    for start in range(0, len(numbers), size):
        yield numbers[start : start + size]


# -- how fast a replay moves and how long it still takes -----------------------------------------------------
# By its latest slices.


# A look at so many slices is steady and still follows a change of the pace.
LATEST = 20
# Nothing was checked for so long: what was before says nothing of now.
STALE = timedelta(minutes=2)


@dataclass(frozen=True, slots=True)
class Moved:
    """A slice that was checked: `size` dead letters between these two instants."""

    size: int
    begun_at: datetime
    checked_at: datetime


@dataclass(frozen=True, slots=True)
class MoveRate:
    """Dead letters a second, and how long `remaining` dead letters take at that; None: not known."""

    per_second: float
    left: timedelta | None


def move_rate(latest: Sequence[Moved], remaining: int, now: datetime, most: float = 0) -> MoveRate | None:
    """Returns None while nothing was moved, or no longer. Slices that wait between each other (a limit, a
    ladder) count with their waiting: the time that is left has it too. `most` a second is what the job may
    do, 0: anything; the first slices alone would look faster."""
    if not latest:
        return None
    first = min(each.begun_at for each in latest)
    last = max(each.checked_at for each in latest)
    if now - last > STALE:
        return None
    seconds = max((last - first).total_seconds(), 0.001)
    per_second = sum(each.size for each in latest) / seconds
    per_second = min(per_second, most) if most else per_second
    left = timedelta(seconds=remaining / per_second) if per_second > 0 and remaining else None
    return MoveRate(per_second, left)
