"""POST /api/v1/protocols/: a KMA's records. Answered 2xx only after the commit."""

from typing import Any

from django.utils import timezone

from agents.api.errors import ApiProblem, Forbidden
from agents.models import Server
from contract.messages import MAX_BATCH_BYTES, MAX_RECORDS, RecordBatch
from contract.wire import JSON, dump, load
from failures.intake import ForeignReport, TooManyRecords, accept_batch


class BatchTooLarge(ApiProblem):
    status_code = 413
    default_code = "too_large"


def take(server: Server, data: Any) -> JSON:
    """The receipt. Raises ApiProblem, ContractError."""
    if isinstance(data, dict) and isinstance(records := data.get("records"), list) and len(records) > MAX_RECORDS:
        raise _too_large(f"{len(records)} records in one batch; at most {MAX_RECORDS}.")
    batch = load(RecordBatch, data)
    try:
        return dump(accept_batch(server, batch, timezone.now()))
    except TooManyRecords as error:
        raise _too_large(str(error)) from error
    except ForeignReport as error:
        raise Forbidden(
            str(error), where="server", what_to_do="Use the token of the server that reports.", code="foreign_report"
        ) from error


def _too_large(detail: str) -> BatchTooLarge:
    return BatchTooLarge(
        detail, where="records", what_to_do="Send less at once.", limit=MAX_RECORDS, limit_bytes=MAX_BATCH_BYTES
    )
