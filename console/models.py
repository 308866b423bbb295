from console.audit.models import AuditEntry
from console.processes import ProcessHeartbeat
from console.tokens.models import ApiToken

__all__ = [
    "ApiToken",
    "AuditEntry",
    "ProcessHeartbeat",
]
