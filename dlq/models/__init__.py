"""Rows of the dlq app, one file per resource."""

from dlq.models.audit import AuditEntry
from dlq.models.letter import DeadLetter, LetterState
from dlq.models.replay import ItemState, JobState, Outcome, ReplayItem, ReplayJob, ReplaySlice, Scope, SliceState
from dlq.models.report import LetterReport

__all__ = [
    "AuditEntry",
    "DeadLetter",
    "ItemState",
    "JobState",
    "LetterReport",
    "LetterState",
    "Outcome",
    "ReplayItem",
    "ReplayJob",
    "ReplaySlice",
    "Scope",
    "SliceState",
]
