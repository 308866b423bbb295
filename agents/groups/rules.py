"""Decides what the activation of a group does next. Pure: facts in, step out.

A member starts only after the one before it finished well. Anything else ends the group's activation.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto

from agents.models import ActivationState


class GroupStep(Enum):
    WAIT = auto()
    START = auto()  # the member at `index`
    SUCCEED = auto()
    FAIL = auto()  # because of the member at `index`


@dataclass(frozen=True, slots=True)
class MemberFacts:
    """The activation of the member at the present step. `ended`: every record of it is here, or it was
    declared lost; before that its state says nothing yet."""

    state: str
    ended: bool


@dataclass(frozen=True, slots=True)
class GroupDecision:
    step: GroupStep
    index: int = 0


def next_step(plan: Sequence[str], index: int, member: MemberFacts | None) -> GroupDecision:
    """`index`: the member that runs or is the next to be started; `member`: its activation in this pass, if
    begun."""
    if index >= len(plan):
        return GroupDecision(GroupStep.SUCCEED, index)
    if member is None:
        return GroupDecision(GroupStep.START, index)
    if not member.ended:
        return GroupDecision(GroupStep.WAIT, index)
    if member.state != ActivationState.SUCCEEDED:
        return GroupDecision(GroupStep.FAIL, index)
    if index + 1 == len(plan):
        return GroupDecision(GroupStep.SUCCEED, index + 1)
    return GroupDecision(GroupStep.START, index + 1)
