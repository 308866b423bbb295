"""The ladder: 1, 5, 25, 125, … dead letters, each step waiting for the outcomes of the one before. Pure.

Of the breaker it compares only counts that a server reported after the outcomes of the step were here. What
it said before that may be of the very failures that a person has mended: a count says nothing of a success
until the next heartbeat.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum, auto

BASE = 5
# Failures in a row: one alone is what the percentage is for.
BREAKER_MOVES = 2
# A heartbeat that was on its way when the last outcome arrived speaks of before.
ON_ITS_WAY = timedelta(seconds=1)
# How long a step waits for the heartbeats of its servers; they come every 2 s.
HEARTBEAT_PATIENCE = timedelta(seconds=10)


class Decision(Enum):
    GO = auto()
    WAIT = auto()
    STOP = auto()


@dataclass(frozen=True, slots=True)
class Outcomes:
    """Outcomes of the dead letters of one step. `open`: nobody has said anything of them yet; `unknown`: for
    an hour."""

    handled: int = 0
    failed: int = 0
    open: int = 0
    unknown: int = 0

    @property
    def moved(self) -> int:
        return self.handled + self.failed + self.open + self.unknown


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Holds what happened to the setting that gets the dead letters since the job began."""

    tripped: bool = False
    disabled: bool = False
    breaker_moved: bool = False
    # A server has not reported since the outcomes of the step were here.
    unheard: bool = False


@dataclass(frozen=True, slots=True)
class Streak:
    """Failures in a row of one run, as its server reported them in its heartbeat at `heard_at` (by our
    clock). `began`: how many it had at its start, carried over from the run before."""

    run: int
    count: int
    heard_at: datetime | None
    began: int = 0


@dataclass(frozen=True, slots=True)
class Next:
    """`why` is a stable word: tripped, disabled, breaker, failing, unknown, outcomes, heartbeat; empty for
    GO."""

    decision: Decision
    why: str = ""


def step_size(step: int) -> int:
    return int(BASE**step)


def position_in_ladder(planned: int) -> tuple[int, int]:
    """Returns, for a ladder of which `planned` dead letters are in slices, the step of the next dead letter,
    and how many more fit in."""
    step, begins = 0, 0
    while planned >= begins + step_size(step):
        begins += step_size(step)
        step += 1
    return step, begins + step_size(step) - planned


def next_step(outcomes: Outcomes, percent: int, around: Surroundings) -> Next:
    """Decides after a step whose slices were all moved: on to the next one, wait, or stop for good."""
    if around.tripped:
        return Next(Decision.STOP, "tripped")
    if around.disabled:
        return Next(Decision.STOP, "disabled")
    if outcomes.failed * 100 > percent * outcomes.moved:
        return Next(Decision.STOP, "failing")
    # Of what nothing was heard nobody can say that it went well.
    if (outcomes.failed + outcomes.unknown) * 100 > percent * outcomes.moved:
        return Next(Decision.STOP, "unknown")
    if outcomes.open:
        return Next(Decision.WAIT, "outcomes")
    if around.breaker_moved:
        return Next(Decision.STOP, "breaker")
    if around.unheard:
        return Next(Decision.WAIT, "heartbeat")
    return Next(Decision.GO)


def breaker_moved(before: Mapping[int, int], streaks: Collection[Streak], known_at: datetime) -> bool:
    """Returns whether a run fails in a row that did not when the step began (`before`, by run). Only those
    count that were heard after `known_at`, when every outcome of the step was here."""
    return any(
        streak.count >= before.get(streak.run, streak.began) + BREAKER_MOVES
        for streak in streaks
        if _heard_since(streak, known_at)
    )


def unheard(streaks: Collection[Streak], known_at: datetime, now: datetime) -> bool:
    """Returns whether to wait for a heartbeat. One that does not come says nothing, and is not waited for
    without end."""
    return now < known_at + HEARTBEAT_PATIENCE and any(
        not _heard_since(streak, known_at) for streak in streaks
    )


def _heard_since(streak: Streak, known_at: datetime) -> bool:
    return streak.heard_at is not None and streak.heard_at > known_at + ON_ITS_WAY
