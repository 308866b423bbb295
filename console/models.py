from console.audit.models import AuditEntry

__all__ = [
    "AuditEntry",
]
