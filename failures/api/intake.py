"""POST /api/v1/protocols/: a KMA's records. Answered 2xx only after the commit."""

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import IO, Any

from django.conf import settings
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema, inline_serializer
from rest_framework import serializers
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import Throttled
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.throttling import BaseThrottle
from rest_framework.views import APIView

from agents.api.authentication import IsServer, ServerTokenAuthentication, token_of
from agents.models import ServerToken
from console.rest.errors import ApiProblem, Forbidden
from console.rest.parsing import BoundedJsonParser, NotJson, bounded_json
from contract import version_3
from contract.messages import MAX_BATCH_BYTES, MAX_RECORDS, Record, RecordBatch, RecordReceipt
from contract.wire import dump, load, unknown
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
        """Parses as the base; the view learns the size in bytes after unpacking, as `body_size`."""
        data = super().parse(stream, media_type, parser_context)
        if (view := (parser_context or {}).get("view")) is not None:
            view.body_size = self._size
        return data

    def loads(self, raw: bytes) -> Any:
        self._size = len(raw)
        try:
            text = raw.decode("utf-8")
            return bounded_json(
                json.loads(text, parse_constant=str, parse_int=_whole, parse_float=_real), DEEPEST_BATCH
            )
        except json.JSONDecodeError as error:
            raise NotJson(error.msg, where=f"line {error.lineno}, column {error.colno}") from error
        except (ValueError, RecursionError) as error:
            raise NotJson(str(error) or type(error).__name__) from error


class BatchTooLarge(ApiProblem):
    status_code = 413
    default_code = "too_large"


class RecordIntake(APIView):
    """Accepts the records of KMAs by POST; other methods belong to the list of protocols."""

    parser_classes = (RecordParser,)
    body_limit = MAX_BATCH_BYTES
    body_size = 0

    def _is_intake(self) -> bool:
        return getattr(self.request, "method", "") == "POST"

    def get_authenticators(self) -> list[BaseAuthentication]:
        return [ServerTokenAuthentication()] if self._is_intake() else super().get_authenticators()

    def get_permissions(self) -> list[Any]:
        return [IsServer()] if self._is_intake() else list(super().get_permissions())

    def get_throttles(self) -> list[BaseThrottle]:
        return [] if self._is_intake() else super().get_throttles()

    @extend_schema(
        description="For KMAs: up to 500 records of one spool, in order, plain or gzip. 2xx only after the "
        "commit. 429 with Retry-After: the token exceeded its rows or bytes per minute.",
        request=OpenApiTypes.OBJECT,
        responses=inline_serializer(
            "RecordReceipt",
            {
                "stored_up_to": serializers.IntegerField(),
                "new": serializers.IntegerField(),
                "known": serializers.IntegerField(),
                "refused": serializers.ListField(child=serializers.DictField()),
                "version": serializers.IntegerField(),
                "known_numbers": serializers.ListField(child=serializers.IntegerField()),
                "conflicts": serializers.ListField(child=serializers.IntegerField()),
                "superseded": serializers.ListField(child=serializers.IntegerField()),
            },
        ),
    )
    def post(self, request: Request) -> Response:
        now = timezone.now()  # before the body: a slow line must not look like a clock that is behind
        token = token_of(request)
        try:
            rate_limit.check(token, now)  # before the body: a token that owes too much costs no parsing
            data = request.data
            return Response(dump(_accept(token, data, self.body_size, now)))
        except TooFast as error:
            raise Throttled(wait=error.wait.total_seconds(), detail=str(error)) from error
        except TooManyRecords as error:
            raise _too_large(str(error)) from error
        except ForeignReport as error:
            raise Forbidden(
                str(error),
                where="server",
                what_to_do="Use the token of the reporting server.",
                code="foreign_report",
            ) from error


def _accept(token: ServerToken, data: Any, size: int, now: datetime) -> RecordReceipt:
    """The receipt of a body of `size` bytes, asked for at `now`."""
    if (
        isinstance(data, dict)
        and isinstance(records := data.get("records"), list)
        and len(records) > MAX_RECORDS
    ):
        raise _too_large(f"The batch has {len(records)} records; the maximum is {MAX_RECORDS}.")
    batch = load(RecordBatch, data)
    batch = replace(batch, records=tuple(map(_of_this_version, batch.records)))
    charge = Charge(
        token, size, Limits(settings.MA_INTAKE_ROWS_PER_MINUTE, settings.MA_INTAKE_BYTES_PER_MINUTE)
    )
    return accept_batch(token.server, batch, now, charge=charge, unknown=list(unknown(RecordBatch, data)))


def _of_this_version(record: Record) -> Record:
    kind, content = version_3.record(record.kind, record.content)
    same = kind == record.kind and content is record.content
    return record if same else replace(record, kind=kind, content=content)


def _too_large(detail: str) -> BatchTooLarge:
    return BatchTooLarge(
        detail,
        where="records",
        what_to_do="Send less data per request.",
        limit=MAX_RECORDS,
        limit_bytes=MAX_BATCH_BYTES,
    )


def _whole(text: str) -> int | str:
    return int(text) if len(text) <= DIGITS + 2 else text


def _real(text: str) -> float | str:
    number = float(text)
    return number if math.isfinite(number) else text
