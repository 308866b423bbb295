"""A whole AMQP 1.0 message <-> `Message`, every type kept (OASIS AMQP 1.0 part 3, section 3.2)."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

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
from broker.amqp.types import Malformed, read, write
from broker.port import NULL, BodyKind, Message, MessageUndecodable
from contract.names import BROKER_ID, NOT_CONVERTIBLE
from contract.typed import Typed, text_of

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def decode(encoded: bytes) -> Message:
    """The message with every type. Raises MessageUndecodable."""
    try:
        return _decoded(encoded)
    except Malformed as error:
        raise MessageUndecodable(f"not an AMQP message: {error}") from error


def _decoded(encoded: bytes) -> Message:
    found: dict[str, Any] = {}
    body: list[tuple[int, Typed]] = []
    for code, start, _end in sections(encoded):
        if code == HEADER:
            found.update(_header(_fields(encoded, start, 5)))
        elif code == PROPERTIES:
            found.update(_properties(_fields(encoded, start, 13)))
        elif code == ANNOTATIONS:
            found["annotations"] = _names(encoded, start)
        elif code == APPLICATION:
            found["properties"] = _names(encoded, start)
        elif code in BODY_KINDS:
            body.append((code, read(encoded, start)[0]))
    found.setdefault("durable", False)
    kind, value = _body(body)
    return Message(body=value, body_kind=kind, **found)


def _fields(encoded: bytes, at: int, number: int) -> list[Typed]:
    """Of a section that is a list; those that are left out at its end are null."""
    value, _ = read(encoded, at)
    if value.type != "list":
        raise Malformed(f"a section is {value.type}, not a list")
    return [*value.value[:number], *[NULL] * (number - len(value.value))]


def _names(encoded: bytes, at: int) -> dict[str, Typed]:
    value, _ = read(encoded, at)
    if value.type == "null":
        return {}
    if value.type != "map":
        raise Malformed(f"a section is {value.type}, not a map")
    return {
        text_of(name) if name.type not in ("string", "symbol") else name.value: item
        for name, item in value.value
    }


def _body(parts: list[tuple[int, Typed]]) -> tuple[BodyKind, Typed]:
    if not parts:
        return BodyKind.VALUE, NULL
    code = parts[0][0]
    if any(other != code for other, _ in parts) or (code == VALUE and len(parts) > 1):
        raise Malformed("incompatible body sections")
    if code == DATA:
        return BodyKind.DATA, Typed("binary", b"".join(_content(part, "binary") for _, part in parts))
    if code == SEQUENCE:
        return BodyKind.SEQUENCE, Typed(
            "list", tuple(item for _, part in parts for item in _content(part, "list"))
        )
    return BodyKind.VALUE, parts[0][1]


def _content(part: Typed, kind: str) -> Any:
    if part.type != kind:
        raise Malformed(f"a body section is {part.type}, not {kind}")
    return part.value


def _header(fields: list[Typed]) -> dict[str, Any]:
    durable, priority, ttl, _first, delivery_count = (field.value for field in fields)
    return {
        "durable": bool(durable),
        "priority": _number(priority, 4),
        "ttl_ms": _number(ttl, 0),
        "delivery_count": _number(delivery_count, 0),
    }


def _properties(values: list[Typed]) -> dict[str, Any]:
    user = values[1].value
    return {
        "message_id": None if values[0].type == "null" else values[0],
        "user_id": user if isinstance(user, bytes) else b"",
        "to": text_of(values[2]),
        "subject": _text(values[3]),
        "reply_to": _text(values[4]),
        "correlation_id": None if values[5].type == "null" else values[5],
        "content_type": _text(values[6]),
        "content_encoding": _text(values[7]),
        "expires_at": instant(values[8].value),
        "created_at": instant(values[9].value),
        "group_id": _text(values[10]),
        "group_sequence": _number(values[11].value, 0),
        "reply_to_group_id": _text(values[12]),
    }


def _text(item: Typed) -> str:
    return item.value if isinstance(item.value, str) else text_of(item)


def _number(value: Any, default: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else default


def instant(milliseconds: Any) -> datetime | None:
    """The instant, or None where there is none or it is outside of the years that Python knows."""
    if not isinstance(milliseconds, int):
        return None
    try:
        return EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return None


# -- encoding ------------------------------------------------------------------------------------------------


def encode(message: Message) -> bytes:
    """The bytes of the message. Raises ValueError when a value is none of its AMQP type."""
    parts = [_section(HEADER, _list(_header_fields(message)))]
    if message.annotations:
        parts.append(_section_of_names(ANNOTATIONS, "symbol", message.annotations))
    properties = _list(_property_fields(message))
    if properties.value:
        parts.append(_section(PROPERTIES, properties))
    if message.properties:
        parts.append(_section_of_names(APPLICATION, "string", message.properties))
    parts.append(_section(_BODY_CODES[message.body_kind], message.body))
    return b"".join(parts)


_BODY_CODES = {BodyKind.DATA: DATA, BodyKind.SEQUENCE: SEQUENCE, BodyKind.VALUE: VALUE}
_BODY_TYPES = {DATA: "binary", SEQUENCE: "list"}


def _section(code: int, content: Typed) -> bytes:
    if _BODY_TYPES.get(code, content.type) != content.type:
        raise ValueError(f"a body section of this kind holds {_BODY_TYPES[code]}, not {content.type}")
    return b"\x00\x53" + bytes((code,)) + write(content)


def _list(fields: list[Typed]) -> Typed:
    while fields and fields[-1].type == "null":
        fields.pop()
    return Typed("list", tuple(fields))


def _section_of_names(code: int, keys: str, items: Mapping[str, Typed]) -> bytes:
    """A map section; messages of one kind have the same names, so what was written of a short one is kept."""
    parts = []
    for name, item in items.items():
        parts.append(_known_name(keys, name) if len(name) <= _KNOWN_NAME else write(Typed(keys, name), 1))
        parts.append(write(item, 1))
    content = len(parts).to_bytes(4, "big") + b"".join(parts)
    return b"\x00\x53" + bytes((code, 0xD1)) + len(content).to_bytes(4, "big") + content


_KNOWN_NAME, _KNOWN_NAMES = 64, 1024  # characters of a name that is kept, and how many


@lru_cache(_KNOWN_NAMES)
def _known_name(keys: str, name: str) -> bytes:
    return write(Typed(keys, name), 1)


def _header_fields(message: Message) -> list[Typed]:
    return [
        Typed("boolean", message.durable),
        Typed("ubyte", message.priority) if message.priority != 4 else NULL,
        Typed("uint", message.ttl_ms) if message.ttl_ms else NULL,
        NULL,
        Typed("uint", message.delivery_count) if message.delivery_count else NULL,
    ]


def _property_fields(message: Message) -> list[Typed]:
    return [
        message.message_id or NULL,
        Typed("binary", message.user_id) if message.user_id else NULL,
        _optional("string", message.to),
        _optional("string", message.subject),
        _optional("string", message.reply_to),
        message.correlation_id or NULL,
        _optional("symbol", message.content_type),
        _optional("symbol", message.content_encoding),
        _milliseconds(message.expires_at),
        _milliseconds(message.created_at),
        _optional("string", message.group_id),
        Typed("uint", message.group_sequence) if message.group_sequence else NULL,
        _optional("string", message.reply_to_group_id),
    ]


def _optional(kind: str, value: str) -> Typed:
    return Typed(kind, value) if value else NULL


def _milliseconds(moment: datetime | None) -> Typed:
    return NULL if moment is None else Typed("timestamp", (moment - EPOCH) // timedelta(milliseconds=1))


# -- a message of ours on its way to the wire ----------------------------------------------------------------


def encode_outgoing(message: Message) -> bytes:
    """What goes to the wire. The delivery count is the broker's note, and why a Core message could not be
    converted is ours: a copy of a dead letter begins anew.

    Raises ValueError for what AMQP cannot carry, and for a text outside of the body that is not valid
    Unicode: the broker takes such a message, but no filter of its queues can read it, so its dead letter
    would reach the feed only.
    """
    for name, item in (*message.properties.items(), *message.annotations.items()):
        _check_text(name, f"the name {name!r:.80}")
        _check_item(item, f"property {name!r:.80}")
    for name in _TEXTS:
        _check_text(getattr(message, name), name)
    if message.delivery_count or NOT_CONVERTIBLE in message.annotations:
        kept = {
            name: item
            for name, item in message.annotations.items()
            if name not in (NOT_CONVERTIBLE, BROKER_ID)
        }
        message = replace(message, delivery_count=0, annotations=kept)
    return encode(message)


_TEXTS = (
    "to",
    "subject",
    "reply_to",
    "content_type",
    "content_encoding",
    "group_id",
    "reply_to_group_id",
)


def _check_text(text: str, what: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"{what} is not valid Unicode: {error.reason}") from error


def _check_item(item: Typed, what: str) -> None:
    if item.type in ("string", "symbol"):
        _check_text(item.value, what)
    elif item.type in ("list", "array", "described"):
        for part in item.value:
            _check_item(part, what)
    elif item.type == "map":
        for pair in item.value:
            for part in pair:
                _check_item(part, what)
