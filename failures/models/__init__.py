"""Rows of the failures app, one file per resource."""

from failures.models.protocol import FailureProtocol
from failures.models.recovered import RecoveredMessage
from failures.models.spool import RefusedRecord, SpoolMark

__all__ = ["FailureProtocol", "RecoveredMessage", "RefusedRecord", "SpoolMark"]
