from console.audit.models import AuditEntry
from console.tokens.models import ApiToken

__all__ = [
    "ApiToken",
    "AuditEntry",
]
