"""Where the sections of an encoded AMQP message are, and a few named values without decoding the rest."""

from collections.abc import Collection, Iterator
from typing import Any

from broker.amqp.types import ARRAYS, COMPOUND, FIXED, VARIABLE, Malformed, read, span, text
from broker.port import MessageUndecodable

HEADER, DELIVERY_ANNOTATIONS, ANNOTATIONS, PROPERTIES, APPLICATION = 0x70, 0x71, 0x72, 0x73, 0x74
DATA, SEQUENCE, VALUE, FOOTER = 0x75, 0x76, 0x77, 0x78
BODY_KINDS = frozenset({DATA, SEQUENCE, VALUE})
_SYMBOLS = {
    "amqp:header:list": HEADER,
    "amqp:delivery-annotations:map": DELIVERY_ANNOTATIONS,
    "amqp:message-annotations:map": ANNOTATIONS,
    "amqp:properties:list": PROPERTIES,
    "amqp:application-properties:map": APPLICATION,
    "amqp:data:binary": DATA,
    "amqp:amqp-sequence:list": SEQUENCE,
    "amqp:amqp-value:*": VALUE,
    "amqp:footer:map": FOOTER,
}
_KNOWN = frozenset(_SYMBOLS.values())
_LENGTHS = {code: width for code, (_, width) in (VARIABLE | COMPOUND).items()} | ARRAYS


def sections(encoded: bytes) -> Iterator[tuple[int, int, int]]:
    """(descriptor code, start, end) of the content of each section. Raises Malformed; no bytes are no
    message."""
    at, size = 0, len(encoded)
    if not size:
        raise Malformed("no bytes")
    while at < size:
        if encoded[at] != 0:
            raise Malformed("a section has no descriptor")
        if encoded[at + 1 : at + 2] == b"\x53" and at + 2 < size:
            code, at = encoded[at + 2], at + 3
        else:
            code, at = _descriptor(encoded, at + 1)
        if code not in _KNOWN:
            raise Malformed(f"unknown section 0x{code:02x}")
        end = _end(encoded, at)
        yield code, at, end
        at = end


def _descriptor(encoded: bytes, at: int) -> tuple[int, int]:
    descriptor, at = read(encoded, at)
    if descriptor.type == "ulong":
        return int(descriptor.value), at
    return _SYMBOLS.get(str(descriptor.value), -1), at


def _end(encoded: bytes, at: int) -> int:
    if at >= len(encoded):
        raise Malformed("a section without content")
    code = encoded[at]
    if code in _LENGTHS:
        return span(encoded, at + 1, _LENGTHS[code])[1]
    if code in FIXED:
        end = at + 1 + FIXED[code][1]
        if end > len(encoded):
            raise Malformed("a section is cut off")
        return end
    return read(encoded, at)[1]  # a described value


# -- a few named values, for walks over very many messages ---------------------------------------------------


_MAPS = {0xC1: 1, 0xD1: 4}
_TEXTS = {code: width for code, (kind, width) in VARIABLE.items() if kind != "binary"}
_SIZES = {code: size for code, (_, size, _) in FIXED.items()}


def read_named_values(
    encoded: bytes, properties: Collection[str], annotations: Collection[str]
) -> dict[str, Any]:
    """Those of the named application properties and message annotations that are there, as plain values.

    Raises MessageUndecodable where the way to them is no AMQP; what is behind them is not looked at.
    """
    found: dict[str, Any] = {}
    try:
        for code, start, end in sections(encoded):
            if code == ANNOTATIONS:
                _look(encoded, start, end, annotations, found)
            elif code == APPLICATION:
                _look(encoded, start, end, properties, found)
                break  # the body follows
    except Malformed as error:
        raise MessageUndecodable(f"not an AMQP message: {error}") from error
    return found


def _look(data: bytes, at: int, end: int, names: Collection[str], found: dict[str, Any]) -> None:
    width = _MAPS.get(data[at])
    if width is None:
        return
    at += 1 + 2 * width
    while at < end:
        name, at = _name(data, at)
        if name in names:
            value, at = read(data, at)
            found[name] = value.value
        else:
            at = _behind(data, at)


def _name(data: bytes, at: int) -> tuple[str, int]:
    width = _TEXTS.get(data[at])
    if width is None:
        return "", _behind(data, at)
    start, end = span(data, at + 1, width)
    return text(data[start:end]), end


def _behind(data: bytes, at: int) -> int:
    """Where the value after the one at `at` begins."""
    if at >= len(data):
        raise Malformed("a value is missing")
    code = data[at]
    if code in _SIZES:
        return at + 1 + _SIZES[code]
    if code in _LENGTHS:
        return span(data, at + 1, _LENGTHS[code])[1]
    return read(data, at)[1]
