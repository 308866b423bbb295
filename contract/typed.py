"""AMQP 1.0 values with their types, independent of any client library, and their JSON form; and text that
every store takes.

A `Typed` keeps the AMQP type name (OASIS AMQP 1.0 part 1, section 1.6), so that a tool which shows, copies
or edits a message neither loses nor guesses a type. JSON form: `{"type": "long", "value": 7}`.
"""

import base64
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

# -- text that every store takes -----------------------------------------------------------------------------
# Failure texts and property values come from hostile places.


REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
MARK = 100  # characters that `head_and_tail` may add


def storable(text: str) -> str:
    """`text` without what PostgreSQL or UTF-8 refuse: NUL becomes U+2400, a lone surrogate U+FFFD."""
    if text.isascii() and "\0" not in text:
        return text
    return (
        text.replace("\0", "\N{SYMBOL FOR NULL}")
        .encode("utf-16", "surrogatepass")
        .decode("utf-16", "replace")
    )


def head_and_tail(text: str, limit: int) -> str:
    """`text`, or when it is longer than `limit` characters its first third and last two thirds with a plain
    mark."""
    if len(text) <= limit:
        return text
    head = limit // 3
    tail = limit - head
    return f"{text[:head]}\n… {len(text) - limit} characters omitted …\n{text[-tail:]}"


# -- AMQP values with their types ----------------------------------------------------------------------------


FLOATS = frozenset({"float", "double"})
TEXTS = frozenset({"string", "symbol", "uuid", "char"})
BYTES = frozenset({"binary", "decimal32", "decimal64", "decimal128"})


@dataclass(frozen=True, slots=True)
class Typed:
    """One AMQP value. `value` by `type`:

    null None · boolean bool · integers and timestamp (milliseconds since 1970) int · float, double float ·
    string, symbol, char (one character), uuid (canonical text) str · binary and decimals (raw) bytes ·
    list, array tuple[Typed, ...] · map tuple[tuple[Typed, Typed], ...] · described (descriptor, value).
    """

    type: str
    value: Any


def to_json(item: Typed) -> dict[str, Any]:
    """The JSON form; every value is one that strict JSON and PostgreSQL take.

    For that NUL and lone surrogates in texts are replaced: a copy of a message is made from its encoded
    bytes.
    """
    return {"type": item.type, "value": _plain(item)}


def _plain(item: Typed) -> Any:
    if item.type in BYTES:
        return base64.b64encode(item.value).decode("ascii")
    if item.type in FLOATS:
        return item.value if math.isfinite(item.value) else str(item.value)
    if item.type in TEXTS:
        return storable(item.value)
    if item.type in ("list", "array", "described"):
        return [to_json(part) for part in item.value]
    if item.type == "map":
        return [[to_json(key), to_json(value)] for key, value in item.value]
    return item.value


def from_json(data: dict[str, Any]) -> Typed:
    """The inverse of `to_json`, replaced characters aside.

    Raises ValueError, KeyError or TypeError when `data` is no such form.
    """
    kind, value = data["type"], data["value"]
    if kind in BYTES:
        return Typed(kind, base64.b64decode(value))
    if kind in FLOATS:
        return Typed(kind, float(value))
    if kind in ("list", "array", "described"):
        return Typed(kind, tuple(from_json(part) for part in value))
    if kind == "map":
        return Typed(kind, tuple((from_json(key), from_json(item)) for key, item in value))
    return Typed(kind, value)


def text_of(item: Typed) -> str:
    """A short text for people: `7`, `true`, `0x00ff`, JSON for lists and maps."""
    if item.type in BYTES:
        return f"0x{bytes(item.value).hex()}"
    if item.type == "null":
        return ""
    if item.type == "boolean":
        return "true" if item.value else "false"
    if item.type in ("list", "array", "described", "map"):
        return json.dumps(_plain(item), ensure_ascii=False)
    return storable(str(item.value))


def canonical(item: Typed) -> bytes:
    """An unambiguous encoding for digests: type, length and content; maps sorted by their encoded keys."""
    content = _CANONICAL.get(item.type, _scalar)(item)
    return b"%s:%d:%s" % (item.type.encode(), len(content), content)


def _scalar(item: Typed) -> bytes:
    if item.type in BYTES:
        return bytes(item.value)
    if item.type in FLOATS:
        return float(item.value).hex().encode()
    return str(item.value).encode("utf-8", "surrogatepass")


def _sequence(item: Typed) -> bytes:
    return b"".join(canonical(part) for part in item.value)


def _map(item: Typed) -> bytes:
    return b"".join(sorted(canonical(key) + canonical(value) for key, value in item.value))


_CANONICAL: dict[str, Callable[[Typed], bytes]] = {
    "list": _sequence,
    "array": _sequence,
    "described": _sequence,
    "map": _map,
}
