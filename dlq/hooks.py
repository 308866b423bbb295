"""Describes what an action does around the moves of its slices, told by whoever owns the action."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from console.hooks import Hook
from dlq.models import ReplayJob, ReplaySlice


@dataclass(frozen=True, slots=True)
class Hooks:
    """`before_move` is called before each try of a slice, again after a crash; what it does not want to be
    moved it takes out of the state planned. It may raise BrokerError: then the slice is tried again later.
    `after_check` is called in the transaction that says that the dead letters of these items left.
    `committed`: those of these items for which more was done already than can be taken back, so their dead
    letters have to leave whatever becomes of the job. `finish` ends what `before_move` may have left half
    done with a slice of a job that is cancelled; it may raise BrokerError too."""

    before_move: Callable[[ReplayJob, ReplaySlice], None]
    after_check: Callable[[Sequence[int], datetime], None]
    committed: Callable[[Sequence[int]], list[int]]
    finish: Callable[[ReplayJob, ReplaySlice], None]


# In the transaction that ends a job, whatever its end: the job, its state and when.
replay_ended: Hook[[ReplayJob, str, datetime], None] = Hook()

_hooks: dict[str, Hooks] = {}


def register_hooks(action: str, hooks: Hooks) -> None:
    """Call it at start-up."""
    _hooks[action] = hooks


def hooks_of(action: str) -> Hooks | None:
    return _hooks.get(action)
