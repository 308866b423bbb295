"""What an action does around the moves of its slices, told by whoever owns the action."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from dlq.models import ReplayJob, ReplaySlice


@dataclass(frozen=True, slots=True)
class Hooks:
    """`before_move` is called before each try of a slice, again after a crash; what it does not want to be moved it
    takes out of the state planned. It may raise BrokerError: then the slice is tried again later. `after_check` is
    called in the transaction that says that the letters of these items left."""

    before_move: Callable[[ReplayJob, ReplaySlice], None]
    after_check: Callable[[Sequence[int], datetime], None]


_hooks: dict[str, Hooks] = {}


def register(action: str, hooks: Hooks) -> None:
    """At start-up."""
    _hooks[action] = hooks


def hooks_of(action: str) -> Hooks | None:
    return _hooks.get(action)
