from console.audit.models import AuditEntry
from console.jobs.locks import NamedLock
from console.processes import ProcessHeartbeat
from console.tokens.models import ApiToken

__all__ = [
    "ApiToken",
    "AuditEntry",
    "NamedLock",
    "ProcessHeartbeat",
]
