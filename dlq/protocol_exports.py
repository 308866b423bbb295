"""Files of failure protocols in the audit, as those of letters are."""

from collections.abc import Mapping
from typing import Any

from django.utils import timezone

from dlq.auditing import record
from dlq.models import AuditResult


def told(by: Any, facts: Mapping[str, Any], whole: bool) -> None:
    """Before anything is sent; once more where it was not sent to its end."""
    key = str(facts["setting"])
    record(
        "export_protocols", by=by, now=timezone.now(), target=f"setting:{key}" if key else "protocols:all",
        setting_key=key, counts={"protocols": facts["count"]} if "count" in facts else None,
        result=AuditResult.DONE if whole else AuditResult.FAILED,
        detail={"file": facts["file"], "query": facts["query"]},
    )  # fmt: skip
