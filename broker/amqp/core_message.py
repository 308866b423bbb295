"""A Core message as the broker tunnels it through AMQP -> the AMQP message that stands for it.

The broker's own conversion fails for some legal messages, and cuts compressed ones; a message that it cannot
convert it takes from whoever consumes or browses (docs/explanation/broker.md). Asked for it, it sends Core
messages as they are: see `broker.amqp.core_tunnel`. What it would have made of them is made here, equal in
everything that it can convert.

A Core message is headers, properties and a body of one of the kinds of JMS, texts in UTF-16; a large one's
body comes in sections of its own. Pure.
"""

import struct
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

from broker.amqp.codec import encode, instant
from broker.amqp.compressed import LARGE_COMPRESSED, LARGE_SIZE, inflated
from broker.amqp.core_tunnel import DATA, UNREADABLE, Head, Reader, read_parts
from broker.port import NULL, BodyKind, Message
from contract.names import (
    BROKER_ID,
    BYTES_IN_STREAM,
    JMS_KIND,
    MALFORMED_BODY,
    NOT_CONVERTIBLE,
    ORIG_ADDRESS,
    ORIG_MESSAGE_ID,
    ORIG_QUEUE,
)
from contract.typed import Typed

_OBJECT, _TEXT, _BYTES, _MAP, _STREAM = 2, 3, 4, 5, 6
# `x-opt-jms-msg-type` of each kind.
_JMS_KINDS = {_OBJECT: 1, _MAP: 2, _BYTES: 3, _STREAM: 4, _TEXT: 5}
_JAVA_OBJECT = "application/x-java-serialized-object"
_PREFIXES = {"queue://": 0, "topic://": 1, "temp-queue://": 2, "temp-topic://": 3}
_QUEUE, _TOPIC = 0, 1
_ORIGIN = (ORIG_ADDRESS, ORIG_QUEUE, ORIG_MESSAGE_ID)
_HIDDEN = ("__AMQ_CID", "_AMQ_ROUTE_TO")
# What an AMQP message left on the Core message that it was made into, and what the broker's own conversion
# leaves.
_AMQP = "JMS_AMQP_"
_CONTENT_TYPE, _CONTENT_ENCODING = f"{_AMQP}ContentType", f"{_AMQP}ContentEncoding"
_REPLY_TO_GROUP = f"{_AMQP}ReplyToGroupID"
_ANNOTATION = f"{_AMQP}MA_"
_LEFT_OF_AMQP = (
    *(_CONTENT_TYPE, _CONTENT_ENCODING, _REPLY_TO_GROUP, _ANNOTATION),
    *(f"{_AMQP}{rest}" for rest in ("HEADER", "PROPERTIES", "NATIVE", "ORIGINAL_ENCODING", "FirstAcquirer")),
    *(f"{_AMQP}{rest}" for rest in ("DA_", "FT_", "ENCODED_")),
)
_NO_APPLICATION = (*_HIDDEN, *_LEFT_OF_AMQP)
# Properties that are fields of an AMQP message.
_AS_FIELDS = frozenset(
    {
        "_AMQ_GROUP_ID",
        "_AMQ_GROUP_SEQUENCE",
        "_AMQ_VALIDATED_USER",
        "_AMQ_ROUTING_TYPE",
        "_AMQ_SCHED_DELIVERY",
    }
    | {"NATIVE_MESSAGE_ID", "_AMQ_INGRESS_TIMESTAMP", "JMSXGroupID", "JMSXGroupSeq", "JMSXUserID"}
)


def from_core(encoded: bytes) -> bytes:
    """The AMQP message that stands for a tunneled one; any other is the same object. Never raises for what is
    in it: a body that cannot be read stays as the bytes that it is, and fields that AMQP cannot hold are left
    out."""
    if encoded[:4] != DATA:
        return encoded
    try:
        head, body = read_parts(encoded)
    except UNREADABLE:
        return encoded
    try:
        return encode(_message(head, body))
    except UNREADABLE:
        return encode(_bare_message(head, body))


# -- the message that stands for it --------------------------------------------------------------------------


def _message(head: Head, body: bytes) -> Message:
    properties = head.properties
    whole = inflated(body, properties)
    annotations = {JMS_KIND: Typed("byte", _JMS_KINDS.get(head.kind, 0))}
    kept = properties
    if whole is not None:
        kept = {name: item for name, item in properties.items() if name not in (LARGE_COMPRESSED, LARGE_SIZE)}
        body = whole
    try:
        kind, content = _body(head.kind, body)
    except (ValueError, struct.error):
        kind, content = BodyKind.DATA, Typed("binary", body)
        annotations[NOT_CONVERTIBLE] = Typed("string", MALFORMED_BODY)
    if head.kind == _STREAM and any(item.type == "binary" for item in _items(content)):
        annotations[NOT_CONVERTIBLE] = Typed("string", BYTES_IN_STREAM)
    if NOT_CONVERTIBLE in annotations:
        annotations[BROKER_ID] = Typed("long", head.broker_id)
    message = Message(
        body=content,
        body_kind=kind,
        properties=_application(kept),
        annotations=annotations,
        durable=head.durable,
        priority=head.priority,
        created_at=instant(head.created_at) if head.created_at else None,
        expires_at=instant(head.expires_at) if head.expires_at else None,
        ttl_ms=_left(head.expires_at),
    )
    return _addressed(message, head)


def _bare_message(head: Head, body: bytes) -> Message:
    """The body as bytes, and where it died: nothing else of it is sure to be possible in AMQP."""
    origin = {
        name: item
        for name, item in head.properties.items()
        if name in _ORIGIN and (item.type == "long" or (item.type == "string" and _is_text(item.value)))
    }
    kind = {JMS_KIND: Typed("byte", _JMS_KINDS.get(head.kind, 0))}
    return Message(
        body=Typed("binary", body),
        body_kind=BodyKind.DATA,
        properties=origin,
        annotations=kind,
        durable=head.durable,
    )


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _items(content: Typed) -> tuple[Typed, ...]:
    return content.value if content.type == "list" else ()


def _left(expires_at: int) -> int:
    if not expires_at:
        return 0
    left = expires_at - int(datetime.now(UTC).timestamp() * 1000)
    return max(1, left) & 0xFFFFFFFF


def _body(kind: int, body: bytes) -> tuple[BodyKind, Typed]:
    reader = Reader(body)
    if kind == _BYTES:
        return BodyKind.DATA, Typed("binary", body)
    if kind == _OBJECT:
        return BodyKind.DATA, Typed("binary", reader.take(reader.number(">i")))
    if kind == _MAP:
        entries = reader.names()
        return BodyKind.VALUE, Typed(
            "map", tuple((Typed("string", name), item) for name, item in entries.items())
        )
    if kind == _STREAM:
        items = []
        while reader.at < len(body):
            items.append(reader.value(reader.number(">b"), reader.stream_text))
        return BodyKind.VALUE, Typed("list", tuple(items))
    text = reader.optional_text() if body else None
    return BodyKind.VALUE, NULL if text is None else Typed("string", text)


def _application(properties: dict[str, Typed]) -> dict[str, Typed]:
    """What a producer or the broker set; `JMSXDeliveryCount` the broker's conversion adds to every one."""
    kept = {
        name: item
        for name, item in properties.items()
        if name not in _AS_FIELDS
        and not name.startswith(_NO_APPLICATION)
        and (not name.startswith("JMS") or name.startswith(("JMSX", "JMS_")))
    }
    kept["JMSXDeliveryCount"] = kept.get("JMSXDeliveryCount", NULL)
    return kept


def _addressed(message: Message, head: Head) -> Message:
    def text(*names: str) -> str:
        found = (head.properties[name] for name in names if name in head.properties)
        return next((str(item.value) for item in found if item.type != "null"), "")

    annotations = dict(message.annotations)
    routing = head.properties.get("_AMQ_ROUTING_TYPE")
    if head.address:
        topic = routing is not None and routing.value == 0
        kind = next((kind for prefix, kind in _PREFIXES.items() if head.address.startswith(prefix)), None)
        annotations["x-opt-jms-dest"] = Typed(
            "byte", kind if kind is not None else _TOPIC if topic else _QUEUE
        )
    if reply_to := text("JMSReplyTo"):
        kind = next((kind for prefix, kind in _PREFIXES.items() if reply_to.startswith(prefix)), _QUEUE)
        annotations["x-opt-jms-reply-to"] = Typed("byte", kind)
    if "_AMQ_INGRESS_TIMESTAMP" in head.properties:
        annotations["x-opt-ingress-time"] = head.properties["_AMQ_INGRESS_TIMESTAMP"]
    for name, item in head.properties.items():
        # What only this module says, no producer may.
        if name.startswith(_ANNOTATION) and name.removeprefix(_ANNOTATION) not in (
            NOT_CONVERTIBLE,
            BROKER_ID,
        ):
            annotations.setdefault(name.removeprefix(_ANNOTATION), item)
    sequence = head.properties.get("_AMQ_GROUP_SEQUENCE", head.properties.get("JMSXGroupSeq"))
    native = text("NATIVE_MESSAGE_ID")
    correlation = head.properties.get("JMSCorrelationID", NULL)
    return replace(
        message,
        annotations=annotations,
        message_id=_id(native) if native else _own_id(head.user_id),
        correlation_id=_id(correlation.value) if correlation.type == "string" else _given(correlation),
        to=_bare(head.address),
        reply_to=_bare(reply_to),
        subject=text("JMSType"),
        content_type=text(_CONTENT_TYPE) or (_JAVA_OBJECT if head.kind == _OBJECT else ""),
        content_encoding=text(_CONTENT_ENCODING),
        reply_to_group_id=text(_REPLY_TO_GROUP),
        group_id=text("_AMQ_GROUP_ID", "JMSXGroupID"),
        group_sequence=sequence.value & 0xFFFFFFFF
        if sequence is not None and isinstance(sequence.value, int)
        else 0,
        user_id=text("_AMQ_VALIDATED_USER", "JMSXUserID").encode("utf-8", "surrogatepass"),
    )


def _given(item: Typed) -> Typed | None:
    return None if item.type == "null" else item


def _own_id(user_id: bytes) -> Typed | None:
    return Typed("string", f"ID:{UUID(bytes=user_id)}") if user_id else None


def _id(text: str) -> Typed:
    """An AMQP id that was written as text, with its type."""
    for prefix, read in _ID_FORMS.items():
        if text.startswith(prefix):
            try:
                return read(text.removeprefix(prefix))
            except ValueError:
                break
    return Typed("string", text)


def _ulong(text: str) -> int:
    number = int(text)
    if not 0 <= number < 2**64:
        raise ValueError(f"{text} is not a ulong")
    return number


_ID_FORMS: dict[str, Callable[[str], Typed]] = {
    "ID:AMQP_NO_PREFIX:": lambda text: Typed("string", text),
    "ID:AMQP_STRING:": lambda text: Typed("string", text),
    "ID:AMQP_UUID:": lambda text: Typed("uuid", str(UUID(text))),
    "ID:AMQP_ULONG:": lambda text: Typed("ulong", _ulong(text)),
    "ID:AMQP_BINARY:": lambda text: Typed("binary", bytes.fromhex(text)),
}


def _bare(address: str) -> str:
    for prefix in _PREFIXES:
        if address.startswith(prefix):
            return address.removeprefix(prefix)
    return address
