"""Rows of the dlq app, one file per resource."""

from dlq.models.content import LetterContent
from dlq.models.edit import EditState, LetterEdit
from dlq.models.letter import DeadLetter, LetterState
from dlq.models.queue_state import LetterQueue
from dlq.models.remark import KnownFault, Note, Taking
from dlq.models.replay import (
    OPEN_JOBS,
    UNFINISHED_JOBS,
    Action,
    ItemState,
    JobState,
    Outcome,
    ReplayItem,
    ReplayJob,
    ReplaySlice,
    Scope,
    SliceState,
)
from dlq.models.report import LetterReport
from dlq.models.undelivered import UndeliveredMessage
from dlq.models.waiting import Fate, WaitingAction, WaitingItem, WaitingKind, WaitingPart, WaitingState
from dlq.models.whole import OPEN_FETCHES, FetchState, WholeFetch
from dlq.models.words import WordRebuild

__all__ = [
    "OPEN_FETCHES",
    "OPEN_JOBS",
    "UNFINISHED_JOBS",
    "Action",
    "DeadLetter",
    "EditState",
    "Fate",
    "FetchState",
    "ItemState",
    "JobState",
    "KnownFault",
    "LetterContent",
    "LetterEdit",
    "LetterQueue",
    "LetterReport",
    "LetterState",
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
