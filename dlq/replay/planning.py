"""What a replay does next, and how its letters are cut into moves. Pure.

Every step may be repeated after a crash: a slice names the ids of its letters, ids of one death, so moving it again
finds nothing that was moved before; and only a walk of the dead-letter queue says what left.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import Enum

from broker.letters import SLICE

# One move: management holds a lock of the whole broker meanwhile.
# A letter that stays although its slice was moved so often cannot be moved.
MOST_TRIES = 3


class Step(Enum):
    PLAN = "plan"
    MOVE = "move"
    CHECK = "check"
    FINISH = "finish"


@dataclass(frozen=True, slots=True)
class Progress:
    """What the rows of a job say."""

    planned: bool
    to_move: int
    to_check: int


@dataclass(frozen=True, slots=True)
class Candidate:
    """A letter of the scope, by its row and by its id at the broker."""

    letter: int
    number: int


@dataclass(frozen=True, slots=True)
class Plan:
    """`slices` are to be moved in order; `missing` are in the index but not in the queue."""

    slices: tuple[tuple[Candidate, ...], ...]
    missing: tuple[Candidate, ...]


@dataclass(frozen=True, slots=True)
class Verdict:
    """`left` are gone from the queue, `again` are to be moved once more, `stuck` stay."""

    left: tuple[int, ...]
    again: tuple[int, ...]
    stuck: tuple[int, ...]


def next_step(progress: Progress) -> Step:
    if not progress.planned:
        return Step.PLAN
    if progress.to_move:
        return Step.MOVE
    return Step.CHECK if progress.to_check else Step.FINISH


def plan(candidates: Sequence[Candidate], present: Collection[int], *, size: int = SLICE) -> Plan:
    """`present` are the ids that a walk found in the dead-letter queue."""
    there = [candidate for candidate in candidates if candidate.number in present]
    return Plan(
        slices=tuple(tuple(there[start : start + size]) for start in range(0, len(there), size)),
        missing=tuple(candidate for candidate in candidates if candidate.number not in present),
    )


def judge(items: Sequence[tuple[int, int]], present: Collection[int], tries: int) -> Verdict:
    """What became of a moved slice: `items` are (item, id at the broker), `tries` how often it was moved."""
    stayed = tuple(item for item, number in items if number in present)
    return Verdict(
        left=tuple(item for item, number in items if number not in present),
        again=stayed if tries < MOST_TRIES else (),
        stuck=stayed if tries >= MOST_TRIES else (),
    )
