"""Describes from which queue to which one each action moves dead letters, who may, and what their rows are
afterwards."""

from dataclasses import dataclass

from contract.names import dead_letter_queue
from dlq import rights
from dlq.models import Action, LetterState
from dlq.models.dead_letter import BIN_QUEUE

# What puts dead letters into the subscription of a setting, where an agent gets them.
TO_A_SUBSCRIPTION = (Action.GIVE_BACK, Action.REDIRECT)
# What puts dead letters into another dead-letter queue, where they get rows of their own.
TO_A_DEAD_LETTER_QUEUE = (Action.DISCARD, Action.PUT_BACK, Action.EDIT)


# Beside the right to see the dead letters. Who may discard may take it back.
RIGHTS: dict[str, str] = {
    Action.GIVE_BACK: rights.GIVE_BACK,
    Action.REDIRECT: rights.REDIRECT,
    Action.DISCARD: rights.DISCARD,
    Action.PUT_BACK: rights.DISCARD,
    Action.EDIT: rights.EDIT,
}


@dataclass(frozen=True, slots=True)
class Route:
    """`afterwards` is the state of a dead letter that left `source`."""

    source: str
    target: str
    afterwards: LetterState


def route(action: str, key: str, target_key: str = "") -> Route:
    """Returns the route of the dead letters of setting `key`; `target_key` is asked for by a redirect only.
    Of an edited dead letter the copy is replayed, what moves is the original."""
    own = dead_letter_queue(key)
    if action == Action.PUT_BACK:
        return Route(BIN_QUEUE, own, LetterState.GONE)
    if action == Action.DISCARD:
        return Route(own, BIN_QUEUE, LetterState.DISCARDED)
    if action == Action.EDIT:
        return Route(own, BIN_QUEUE, LetterState.GIVEN_BACK)
    return Route(own, target_key if action == Action.REDIRECT else key, LetterState.GIVEN_BACK)


def afterwards(action: str) -> LetterState:
    return route(action, "").afterwards
