"""POST /api/v1/protocols/: a KMA's records. Answered 2xx only after the commit."""

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import IO, Any

from django.conf import settings
from rest_framework.exceptions import Throttled

from agents.models import ServerToken
from console.rest.errors import ApiProblem, Forbidden
from console.rest.parsing import BoundedJsonParser, NotJson, bounded
from contract import version_3
from contract.messages import MAX_BATCH_BYTES, MAX_RECORDS, Record, RecordBatch
from contract.wire import JSON, dump, load, unknown
from failures.intake import rate_limit
from failures.intake.batch import ForeignReport, TooManyRecords, accept_batch
from failures.intake.rate_limit import Charge, Limits, TooFast
from failures.intake.sanitize import DIGITS

# One record that nests too deep is refused by itself, and its spool goes on: so a batch may nest deeper than
# a record.
DEEPEST_BATCH = 300


class RecordParser(BoundedJsonParser):
    """JSON where NaN, Infinity and numbers beyond every column become texts: in properties they are kept so,
    in a field that needs a number that one record is refused. Anything else that is not JSON is refused
    whole."""

    def parse(
        self, stream: IO[Any], media_type: Any = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        """As the base; the view learns the size in bytes after unpacking, as `body_size`."""
        data = super().parse(stream, media_type, parser_context)
        if (view := (parser_context or {}).get("view")) is not None:
            view.body_size = self._size
        return data

    def loads(self, raw: bytes) -> Any:
        self._size = len(raw)
        try:
            text = raw.decode("utf-8")
            return bounded(
                json.loads(text, parse_constant=str, parse_int=_whole, parse_float=_real), DEEPEST_BATCH
            )
        except json.JSONDecodeError as error:
            raise NotJson(error.msg, where=f"line {error.lineno}, column {error.colno}") from error
        except (ValueError, RecursionError) as error:
            raise NotJson(str(error) or type(error).__name__) from error


class BatchTooLarge(ApiProblem):
    status_code = 413
    default_code = "too_large"


def check(token: ServerToken, now: datetime) -> None:
    """Before the body is read: a token that owes too much costs no parsing. Raises Throttled."""
    try:
        rate_limit.check(token, now)
    except TooFast as error:
        raise _throttled(error) from error


def take(token: ServerToken, data: Any, size: int, now: datetime) -> JSON:
    """The receipt of a body of `size` bytes, asked for at `now`. Raises ApiProblem, Throttled,
    ContractError."""
    if (
        isinstance(data, dict)
        and isinstance(records := data.get("records"), list)
        and len(records) > MAX_RECORDS
    ):
        raise _too_large(f"{len(records)} records in one batch; at most {MAX_RECORDS}.")
    batch = load(RecordBatch, data)
    batch = replace(batch, records=tuple(map(_of_this_version, batch.records)))
    charge = Charge(
        token, size, Limits(settings.MA_INTAKE_ROWS_PER_MINUTE, settings.MA_INTAKE_BYTES_PER_MINUTE)
    )
    try:
        return dump(
            accept_batch(token.server, batch, now, charge=charge, unknown=list(unknown(RecordBatch, data)))
        )
    except TooManyRecords as error:
        raise _too_large(str(error)) from error
    except TooFast as error:
        raise _throttled(error) from error
    except ForeignReport as error:
        raise Forbidden(
            str(error),
            where="server",
            what_to_do="Use the token of the server that reports.",
            code="foreign_report",
        ) from error


def _of_this_version(record: Record) -> Record:
    kind, content = version_3.record(record.kind, record.content)
    same = kind == record.kind and content is record.content
    return record if same else replace(record, kind=kind, content=content)


def _throttled(error: TooFast) -> Throttled:
    return Throttled(wait=error.wait.total_seconds(), detail=str(error))


def _too_large(detail: str) -> BatchTooLarge:
    return BatchTooLarge(
        detail,
        where="records",
        what_to_do="Send less at once.",
        limit=MAX_RECORDS,
        limit_bytes=MAX_BATCH_BYTES,
    )


def _whole(text: str) -> int | str:
    return int(text) if len(text) <= DIGITS + 2 else text


def _real(text: str) -> float | str:
    number = float(text)
    return number if math.isfinite(number) else text
