"""A few named values of an encoded message, without decoding the rest: for walks over very many messages."""

from collections.abc import Collection
from typing import Any

from broker.amqp_sections import ANNOTATIONS, APPLICATION, sections
from broker.amqp_types import ARRAYS, COMPOUND, FIXED, VARIABLE, Malformed, read, span, text
from broker.errors import MessageUndecodable

_MAPS = {0xC1: 1, 0xD1: 4}
_TEXTS = {code: width for code, (kind, width) in VARIABLE.items() if kind != "binary"}
_SIZES = {code: size for code, (_, size, _) in FIXED.items()}
_LENGTHS = {code: width for code, (_, width) in (VARIABLE | COMPOUND).items()} | ARRAYS


def peek(encoded: bytes, properties: Collection[str], annotations: Collection[str]) -> dict[str, Any]:
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
        raise MessageUndecodable(f"no AMQP message: {error}") from error
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
