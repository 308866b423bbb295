"""The ladder: 1, 5, 25, 125, … letters, each step waiting for what becomes of the one before. Pure."""

from dataclasses import dataclass
from enum import Enum

BASE = 5


class Decision(Enum):
    GO = "go"
    WAIT = "wait"
    STOP = "stop"


@dataclass(frozen=True, slots=True)
class Outcomes:
    """Of the letters of one step. `open`: nobody has said anything of them yet."""

    handled: int = 0
    failed: int = 0
    open: int = 0

    @property
    def moved(self) -> int:
        return self.handled + self.failed + self.open


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What happened to the setting that gets the letters since the job began."""

    tripped: bool = False
    disabled: bool = False
    breaker_moved: bool = False


@dataclass(frozen=True, slots=True)
class Next:
    """`why` is a stable word: tripped, disabled, breaker, failing, outcomes; empty for GO."""

    decision: Decision
    why: str = ""


def step_size(step: int) -> int:
    return int(BASE**step)


def place(planned: int) -> tuple[int, int]:
    """Of a ladder of which `planned` letters are in slices: the step of the next letter, and how many more fit in."""
    step, begins = 0, 0
    while planned >= begins + step_size(step):
        begins += step_size(step)
        step += 1
    return step, begins + step_size(step) - planned


def next_step(outcomes: Outcomes, percent: int, around: Surroundings) -> Next:
    """After a step whose slices were all moved: on to the next one, wait, or stop for good."""
    if around.tripped:
        return Next(Decision.STOP, "tripped")
    if around.disabled:
        return Next(Decision.STOP, "disabled")
    if outcomes.failed * 100 > percent * outcomes.moved:
        return Next(Decision.STOP, "failing")
    if around.breaker_moved:
        return Next(Decision.STOP, "breaker")
    if outcomes.open:
        return Next(Decision.WAIT, "outcomes")
    return Next(Decision.GO)
