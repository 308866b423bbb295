"""Rows of the failures app, one file per resource."""

from failures.models.known_error import Advice, FingerprintAct, FingerprintChange, KnownError
from failures.models.protocol import FailureProtocol, PropertyBackfill, RecoveredMessage
from failures.models.spool import IntakeDebt, RecordConflict, RefusedRecord, SetAside, SpoolMark
from failures.models.tally import (
    FailureDelta,
    FailureGroup,
    Fingerprint,
    FingerprintHour,
    FingerprintVersion,
    FoldMark,
)

__all__ = [
    "Advice",
    "FailureDelta",
    "FailureGroup",
    "FailureProtocol",
    "Fingerprint",
    "FingerprintAct",
    "FingerprintChange",
    "FingerprintHour",
    "FingerprintVersion",
    "FoldMark",
    "IntakeDebt",
    "KnownError",
    "PropertyBackfill",
    "RecordConflict",
    "RecoveredMessage",
    "RefusedRecord",
    "SetAside",
    "SpoolMark",
]
