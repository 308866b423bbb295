"""JSON bodies, plain or gzip, bounded before and after unpacking."""

import json
import zlib
from collections.abc import Mapping
from typing import IO, Any

from rest_framework.parsers import BaseParser

from console.rest.body_limits import SMALL
from console.rest.errors import ApiProblem
from contract.wire import DEEPEST, deeper_than

DEFAULT_LIMIT = SMALL
CHUNK = 64 * 1024


class BodyTooLarge(ApiProblem):
    status_code = 413
    default_code = "too_large"

    def __init__(self, limit: int) -> None:
        super().__init__(
            f"The body is larger than {limit} bytes.",
            where="body",
            what_to_do="Send less data per request.",
            limit=limit,
        )


class NotJson(ApiProblem):
    status_code = 400
    default_code = "not_json"

    def __init__(self, problem: str, where: str = "body") -> None:
        super().__init__(
            f"The body is not JSON: {problem}.", where=where, what_to_do="Send a JSON object in UTF-8."
        )


class BoundedJsonParser(BaseParser):
    """The view may set `body_limit` (bytes after unpacking)."""

    media_type = "application/json"

    def parse(
        self, stream: IO[Any], media_type: Any = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        context = parser_context or {}
        limit = getattr(context.get("view"), "body_limit", DEFAULT_LIMIT)
        raw = _read(stream, limit)
        request = context.get("request")
        encoding = request.headers.get("Content-Encoding", "") if request is not None else ""
        if encoding.lower() == "gzip":
            raw = _unpacked(raw, limit)
        elif encoding.lower() not in ("", "identity"):
            raise ApiProblem(
                f"Content-Encoding {encoding} is not supported.",
                where="Content-Encoding",
                what_to_do="Use gzip.",
            )
        return self.loads(raw)

    def loads(self, raw: bytes) -> Any:
        return loads(raw)


def loads(raw: bytes) -> Any:
    """Strict JSON in UTF-8: no NaN, no Infinity, at most DEEPEST levels. Raises NotJson."""
    try:
        return bounded_json(json.loads(raw.decode("utf-8"), parse_constant=_refuse_constant))
    except json.JSONDecodeError as error:
        raise NotJson(error.msg, where=f"line {error.lineno}, column {error.colno}") from error
    except (ValueError, RecursionError) as error:
        raise NotJson(str(error) or type(error).__name__) from error


def bounded_json(value: Any, most: int = DEEPEST) -> Any:
    """The value itself. Raises NotJson where it nests deeper than anything that readers by recursion can
    take."""
    if deeper_than(value, most):
        raise NotJson(f"nested deeper than {most} levels")
    return value


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON value")


def _read(stream: IO[Any], limit: int) -> bytes:
    parts, size = [], 0
    while chunk := stream.read(CHUNK):
        size += len(chunk)
        if size > limit:
            _drain(stream, 3 * limit)
            raise BodyTooLarge(limit)
        parts.append(chunk)
    return b"".join(parts)


def _drain(stream: IO[Any], bound: int) -> None:
    """Reads what a slightly too large body still brings: a sender that is cut off while writing sees no
    answer."""
    while bound > 0 and (chunk := stream.read(CHUNK)):
        bound -= len(chunk)


def _unpacked(raw: bytes, limit: int) -> bytes:
    unpacker = zlib.decompressobj(wbits=31)
    try:
        unpacked = unpacker.decompress(raw, limit + 1)
    except zlib.error as error:
        raise NotJson(f"not valid gzip ({error})") from error
    if len(unpacked) > limit:
        raise BodyTooLarge(limit)
    if not unpacker.eof:
        raise NotJson("the gzip data is incomplete")
    return unpacked
