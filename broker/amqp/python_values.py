"""The natural Python view of an encoded message, for a child process that decodes every message it
handles."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from broker.amqp.sections import (
    ANNOTATIONS,
    APPLICATION,
    BODY_KINDS,
    DATA,
    HEADER,
    PROPERTIES,
    SEQUENCE,
    VALUE,
    sections,
)
from broker.amqp.types import FIXED, VARIABLE, Malformed, read, span, text
from broker.port import BodyKind, MessageUndecodable
from contract.names import JMS_KIND
from contract.typed import Typed

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class NaturalMessage:
    """A message as an agent sees it.

    Values are None, bool, int, float, str (string, symbol, char), bytes, `uuid.UUID`, `Decimal`, aware
    `datetime` (timestamp; int milliseconds outside of the years 1 to 9999), list, dict. A described value is
    its value. Ids are text, empty where there is none.
    """

    body: Any
    body_kind: BodyKind
    properties: dict[str, Any]
    annotations: dict[str, Any]
    message_id: str
    correlation_id: str
    reply_to: str
    subject: str
    content_type: str
    delivery_count: int
    jms_kind: int | None
    sent_ms: int | None = None


def decode_natural(encoded: bytes) -> NaturalMessage:
    """Decodes all at once, so that what cannot be decoded is known before an agent sees it:
    MessageUndecodable."""
    try:
        return _decoded(encoded)
    except Malformed as error:
        raise MessageUndecodable(f"not an AMQP message: {error}") from error


def _decoded(encoded: bytes) -> NaturalMessage:
    header: list[Any] = []
    fields: list[Any] = []
    properties: dict[str, Any] = {}
    annotations: dict[str, Any] = {}
    body: Any = None
    body_code = 0
    for code, start, _ in sections(encoded):
        if code == APPLICATION:
            properties = _names(encoded, start)
        elif code == PROPERTIES:
            fields = _fields(encoded, start)
        elif code == HEADER:
            header = _list(encoded, start)
        elif code == ANNOTATIONS:
            annotations = _names(encoded, start)
        elif code in BODY_KINDS:
            body = _more_body(encoded, start, code, body_code, body)
            body_code = code
    count = len(fields)
    kind = annotations.get(JMS_KIND)
    return NaturalMessage(
        body=body,
        body_kind=_KINDS[body_code],
        properties=properties,
        annotations=annotations,
        message_id=_id(fields[0]) if count else "",
        correlation_id=_id(fields[5]) if count > 5 else "",
        reply_to=_id(fields[4]) if count > 4 else "",
        subject=_id(fields[3]) if count > 3 else "",
        content_type=_id(fields[6]) if count > 6 else "",
        delivery_count=header[4] if len(header) > 4 and isinstance(header[4], int) else 0,
        jms_kind=kind if isinstance(kind, int) else None,
        sent_ms=fields[9] if count > 9 and isinstance(fields[9], int) and fields[9] > 0 else None,
    )


_KINDS = {0: BodyKind.VALUE, DATA: BodyKind.DATA, SEQUENCE: BodyKind.SEQUENCE, VALUE: BodyKind.VALUE}


def _more_body(encoded: bytes, start: int, code: int, before: int, body: Any) -> Any:
    more, _ = _read(encoded, start, 0)
    if not before:
        if not isinstance(more, _EXPECTED.get(code, object)):
            raise Malformed("a body section of another type")
        return more
    if code != before or code == VALUE or not isinstance(more, _EXPECTED[code]):
        raise Malformed("incompatible body sections")
    return body + more


_EXPECTED: dict[int, type] = {DATA: bytes, SEQUENCE: list}


def _id(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else f"0x{value.hex()}" if isinstance(value, bytes) else str(value)


def _list(data: bytes, at: int) -> list[Any]:
    value, _ = _read(data, at, 0)
    if not isinstance(value, list):
        raise Malformed("a section is not a list")
    return value


_LISTS = {0xC0: 1, 0xD0: 4}
_TIMESTAMP, _TIMESTAMP_SIZE = 0x83, 9  # its code, and its bytes with it


def _fields(data: bytes, at: int) -> list[Any]:
    """The producer's properties. Instants stay milliseconds: dates cost more than all the rest."""
    width = _LISTS.get(data[at])
    if width is None:
        return _list(data, at)
    start, end = span(data, at + 1, width)
    at = start + width
    if at > end:
        raise Malformed("a count is missing")
    found: list[Any] = []
    for _ in range(int.from_bytes(data[start:at], "big")):
        if at < end and data[at] == _TIMESTAMP:
            value = int.from_bytes(data[at + 1 : at + _TIMESTAMP_SIZE], "big", signed=True)
            at += _TIMESTAMP_SIZE
        else:
            value, at = _read(data, at, 1)
        if at > end:
            raise Malformed("a value is longer than declared")
        found.append(value)
    return found


def _names(data: bytes, at: int) -> dict[str, Any]:
    value, _ = _read(data, at, 0)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise Malformed("a section is not a map")
    return (
        value
        if all(isinstance(name, str) for name in value)
        else {str(name): item for name, item in value.items()}
    )


def _read(data: bytes, at: int, depth: int) -> tuple[Any, int]:
    """The natural value at `at` and where the next one begins; the frequent forms first."""
    try:
        code = data[at]
        if code == 0xA1 or code == 0xA3:
            end = at + 2 + data[at + 1]
            if end > len(data):
                raise Malformed("a text is cut off")
            return text(data[at + 2 : end]), end
    except IndexError as error:
        raise Malformed("a value is missing") from error
    if code in _PLAIN:
        size, unpack = _PLAIN[code]
        if at + 1 + size > len(data):
            raise Malformed("a value is cut off")
        return unpack(data, at + 1), at + 1 + size
    if code in VARIABLE:
        kind, width = VARIABLE[code]
        start, end = span(data, at + 1, width)
        return (data[start:end] if kind == "binary" else text(data[start:end])), end
    if code in _WIDTHS and depth < 50:
        return _compound(data, at + 1, code, depth + 1)
    value, end = read(data, at, depth)
    return natural(value), end


# What needs no conversion is read straight away; the rest (timestamps, uuids, …) goes by way of its type.
_PLAIN = {
    code: (size, unpack)
    for code, (kind, size, unpack) in FIXED.items()
    if kind not in ("char", "timestamp", "uuid", "decimal32", "decimal64", "decimal128", "list")
}
_WIDTHS = {0xC0: 1, 0xD0: 4, 0xC1: 1, 0xD1: 4}


def _compound(data: bytes, at: int, code: int, depth: int) -> tuple[Any, int]:
    width = _WIDTHS[code]
    start, end = span(data, at, width)
    at = start + width
    if at > end:
        raise Malformed("a count is missing")
    parts = []
    for _ in range(int.from_bytes(data[start:at], "big")):
        part, at = _read(data, at, depth)
        if at > end:
            raise Malformed("a value is longer than declared")
        parts.append(part)
    if code in (0xC0, 0xD0):
        return parts, end
    if len(parts) % 2:
        raise Malformed("map with a key without a value")
    return _dict(parts[::2], parts[1::2]), end


def _dict(keys: list[Any], values: list[Any]) -> dict[Any, Any]:
    try:
        return dict(zip(keys, values, strict=True))
    except TypeError:  # a list or map as a key
        return {key if key.__hash__ else str(key): value for key, value in zip(keys, values, strict=True)}


def natural(item: Typed) -> Any:
    """The natural Python value of a typed one."""
    kind, value = item.type, item.value
    if kind in ("list", "array"):
        return [natural(part) for part in value]
    if kind == "map":
        return _dict([natural(key) for key, _ in value], [natural(part) for _, part in value])
    if kind == "described":
        return natural(value[1])
    if kind == "uuid":
        return UUID(value)
    if kind == "timestamp":
        return _instant(value)
    if kind in _DECIMALS:
        return _decimal(int.from_bytes(value, "big"), *_DECIMALS[kind])
    return value


def _instant(milliseconds: int) -> datetime | int:
    try:
        return _EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return milliseconds


# type -> (bits, bits of the exponent, bias), IEEE 754-2008 with the binary integer significand that AMQP
# prescribes.
_DECIMALS = {"decimal32": (32, 8, 101), "decimal64": (64, 10, 398), "decimal128": (128, 14, 6176)}


def _decimal(raw: int, bits: int, exponent_bits: int, bias: int) -> Decimal:
    sign = raw >> (bits - 1)
    special = raw >> (bits - 6) & 0b11111
    if special >= 0b11110:
        return Decimal(("-" if sign else "") + ("Infinity" if special == 0b11110 else "NaN"))
    long_form = special >> 3 == 0b11
    shift = bits - 1 - exponent_bits - (2 if long_form else 0)
    exponent = (raw >> shift) & ((1 << exponent_bits) - 1)
    significand = raw & ((1 << shift) - 1) | ((0b100 << shift) if long_form else 0)
    return Decimal(("-" if sign else "") + str(significand)).scaleb(exponent - bias)
