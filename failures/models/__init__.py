"""Rows of the failures app, one file per resource."""

from failures.models.debt import IntakeDebt
from failures.models.known_error import Advice, FingerprintAct, FingerprintChange, KnownError
from failures.models.protocol import FailureProtocol
from failures.models.recovered import RecoveredMessage
from failures.models.retention import RetentionFigure, RetentionRun, RetentionState
from failures.models.saved_view import SavedView
from failures.models.spool import RecordConflict, RefusedRecord, SpoolMark
from failures.models.tally import FailureDelta, FailureGroup, Fingerprint, FingerprintHour, FoldMark

__all__ = [
    "Advice",
    "FailureDelta",
    "FailureGroup",
    "FailureProtocol",
    "Fingerprint",
    "FingerprintAct",
    "FingerprintChange",
    "FingerprintHour",
    "FoldMark",
    "IntakeDebt",
    "KnownError",
    "RecordConflict",
    "RecoveredMessage",
    "RefusedRecord",
    "RetentionFigure",
    "RetentionRun",
    "RetentionState",
    "SavedView",
    "SpoolMark",
]
