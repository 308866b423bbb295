"""What an agent sends, as typed AMQP messages that every JMS, STOMP and AMQP consumer reads as what was
meant."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

from broker.amqp.codec import encode
from broker.port import NULL, BodyKind, Message
from contract.names import JMS_KIND
from contract.typed import Typed

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TEXT, BYTES, MAP, STREAM, PLAIN = 5, 3, 2, 4, 0


def encoded_message(
    body: Any,
    properties: Mapping[str, Any],
    *,
    message_id: str = "",
    correlation_id: str = "",
    reply_to: str = "",
    content_type: str = "",
    priority: int = 4,
    ttl: timedelta | None = None,
    durable: bool = True,
    created_at: datetime | None = None,
) -> bytes:
    """The encoded message. Without a message id it gets one of its own, so that its message key is not
    weak."""
    kind, body_kind, value = _body(body)
    if not 0 <= priority <= 9:
        raise ValueError(f"priority {priority} is not between 0 and 9")
    return encode(
        Message(
            body=value,
            body_kind=body_kind,
            properties={_name(name): typed(item) for name, item in properties.items()},
            annotations={JMS_KIND: Typed("byte", kind)},
            message_id=Typed("string", message_id or f"ID:{uuid4()}"),
            correlation_id=Typed("string", correlation_id) if correlation_id else None,
            reply_to=reply_to,
            content_type=content_type,
            priority=priority,
            ttl_ms=0 if ttl is None else max(1, ttl // timedelta(milliseconds=1)),
            durable=durable,
            created_at=created_at or datetime.now(UTC),
        )
    )


def seconds_property(value: int) -> Typed:
    """A number of seconds as JMS's int. Raises ValueError for what is no positive one."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < 2**31:
        raise ValueError(f"{value!r} is not a whole number of seconds from 1 to 2147483647")
    return Typed("int", value)


def typed(value: Any) -> Typed:
    """The AMQP value of a Python one. A `Typed` is kept; int is a long, float a double, a naive datetime is
    refused."""
    if isinstance(value, Typed):
        return value
    if value is None:
        return NULL
    for kind, convert in _CONVERSIONS:
        if isinstance(value, kind):
            return convert(value)
    raise TypeError(f"AMQP has no value for {type(value).__name__}")


def _body(body: Any) -> tuple[int, BodyKind, Typed]:
    if isinstance(body, (bytes, bytearray, memoryview)):
        return BYTES, BodyKind.DATA, Typed("binary", bytes(body))
    value = typed(body)
    kind = {"string": TEXT, "map": MAP, "list": STREAM}.get(value.type, PLAIN)
    return kind, BodyKind.VALUE, value


def _name(name: Any) -> str:
    if not isinstance(name, str) or not name:
        raise TypeError(f"a property name must be a non-empty string, not {name!r}")
    return name


def _long(value: int) -> Typed:
    if not -(2**63) <= value < 2**63:
        raise ValueError(f"{value} does not fit in a long")
    return Typed("long", value)


def _timestamp(value: datetime) -> Typed:
    if value.tzinfo is None:
        raise ValueError("a timestamp needs a UTC offset")
    return Typed("timestamp", (value - EPOCH) // timedelta(milliseconds=1))


def _map(value: Mapping[Any, Any]) -> Typed:
    return Typed("map", tuple((typed(key), typed(item)) for key, item in value.items()))


def _list(value: list[Any] | tuple[Any, ...]) -> Typed:
    return Typed("list", tuple(typed(item) for item in value))


_CONVERSIONS: tuple[tuple[type | tuple[type, ...], Callable[[Any], Typed]], ...] = (
    (bool, lambda value: Typed("boolean", value)),
    (int, _long),
    (float, lambda value: Typed("double", value)),
    (str, lambda value: Typed("string", value)),
    ((bytes, bytearray, memoryview), lambda value: Typed("binary", bytes(value))),
    (UUID, lambda value: Typed("uuid", str(value))),
    (datetime, _timestamp),
    (Decimal, lambda value: Typed("string", str(value))),
    (Mapping, _map),
    ((list, tuple), _list),
)
