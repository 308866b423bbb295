"""Rows of the console, one file per resource."""

from console.audit.models import AuditEntry
from console.processes import NamedLock, ProcessHeartbeat
from console.saved_filters.models import SavedFilter
from console.tokens.models import ApiToken

__all__ = [
    "ApiToken",
    "AuditEntry",
    "NamedLock",
    "ProcessHeartbeat",
    "SavedFilter",
]
