"""Rows of the dlq app, one file per resource."""

from dlq.models.annotation import KnownFault, Note, Taking
from dlq.models.content import OPEN_FETCHES, EditState, FetchState, LetterContent, LetterEdit, WholeFetch
from dlq.models.dead_letter import DeadLetter, LetterReport, LetterState
from dlq.models.index import LetterQueue, UndeliveredMessage, WordRebuild
from dlq.models.message_action import (
    MessageResult,
    WaitingAction,
    WaitingItem,
    WaitingKind,
    WaitingPart,
    WaitingState,
)
from dlq.models.replay import (
    OPEN_JOBS,
    UNFINISHED_JOBS,
    Action,
    HoldState,
    InOrder,
    JobState,
    ReplayJob,
    Scope,
)
from dlq.models.replay_item import ItemState, Outcome, ReplayItem, ReplaySlice, SliceState

__all__ = [
    "OPEN_FETCHES",
    "OPEN_JOBS",
    "UNFINISHED_JOBS",
    "Action",
    "DeadLetter",
    "EditState",
    "FetchState",
    "HoldState",
    "InOrder",
    "ItemState",
    "JobState",
    "KnownFault",
    "LetterContent",
    "LetterEdit",
    "LetterQueue",
    "LetterReport",
    "LetterState",
    "MessageResult",
    "Note",
    "Outcome",
    "ReplayItem",
    "ReplayJob",
    "ReplaySlice",
    "Scope",
    "SliceState",
    "Taking",
    "UndeliveredMessage",
    "WaitingAction",
    "WaitingItem",
    "WaitingKind",
    "WaitingPart",
    "WaitingState",
    "WholeFetch",
    "WordRebuild",
]
