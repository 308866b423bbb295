"""A dead letter as the feed brings it -> the row of the index. No database; whatever the bytes are, there is
a row."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from django.db.models.base import ModelState

from broker.amqp.codec import decode, encode
from broker.amqp.compressed import is_cut
from broker.amqp.sections import read_named_values
from broker.port import BodyKind, Message, MessageUndecodable
from contract.message_key import message_key
from contract.names import (
    ANNOTATED_ORIG_ADDRESS,
    ANNOTATED_ORIG_MESSAGE_ID,
    ANNOTATED_ORIG_QUEUE,
    JMS_KIND,
    ORIG_ADDRESS,
    ORIG_MESSAGE_ID,
    ORIG_QUEUE,
    subscription_of,
)
from contract.typed import Typed, storable, text_of, to_json
from dlq.models import DeadLetter, LetterContent
from dlq.models.content import keep_content

# Bytes of a body that is kept whole, and of the head that is kept of a larger one.
WHOLE_BODY = 1024 * 1024
HEAD_OF_BODY = 64 * 1024
# Characters shown in lists, and bytes of a body that is no text.
HEAD_OF_TEXT = 4096
HEAD_OF_BYTES = 512
LONGEST_NAME = 300
# What the model gives to fields that are not named; the mutable ones are named always.
_OF_CONTENT = ("encoded", "body_text", "properties", "annotations")
_DEFAULTS = {field.attname: field.get_default() for field in DeadLetter._meta.concrete_fields}


@dataclass(frozen=True, slots=True)
class Origin:
    """Says where the message was before it died. `message_id` None: nobody says."""

    address: str
    queue: str
    message_id: int | None


def read_letter(encoded: bytes, node_id: str, now: datetime) -> tuple[DeadLetter, Message | None]:
    """An unsaved row; `queue` and `setting` are left to who knows the queues. And the message, None: it is
    none."""
    try:
        message = decode(encoded)
    except MessageUndecodable as error:
        return raw_row(encoded, node_id, now, str(error)), None
    return _row(encoded, message, node_id, now), message


def letter_row(encoded: bytes, node_id: str, now: datetime) -> DeadLetter:
    return read_letter(encoded, node_id, now)[0]


def raw_row(encoded: bytes, node_id: str, now: datetime, problem: str) -> DeadLetter:
    """A dead letter that cannot be read: its bytes, and why."""
    return _made(
        node_id=node_id,
        orig_message_id=own_number(encoded),
        encoded=encoded[:WHOLE_BODY],
        truncated=len(encoded) > WHOLE_BODY,
        problem=storable(problem),
        body_text=f"0x{encoded[:HEAD_OF_BYTES].hex()}",
        properties=[],
        annotations=[],
        size=len(encoded),
        seen_at=now,
        state_at=now,
    )


def own_number(content: bytes) -> int:
    """A negative number for a dead letter that has no id: the same bytes are the same dead letter."""
    return -1 - int.from_bytes(hashlib.sha256(content).digest()[:8], "big") // 4


def _row(encoded: bytes, message: Message, node_id: str, now: datetime) -> DeadLetter:
    origin = origin_of(message)
    section = message.body_section
    key = message_key(message.message_id, section, message.properties)
    size = body_size(message)
    number = origin.message_id
    if number is None:
        number = own_number(key.text.encode("utf-8", "surrogatepass") + section)
    kept, truncated = _kept(encoded, message, size)
    jms_kind = message.annotations.get(JMS_KIND)
    return _made(
        node_id=node_id,
        orig_message_id=number,
        setting_key=subscription_of(name_of_queue(origin.queue)),
        address=name_of_queue(origin.address),
        orig_queue=subscription_of(name_of_queue(origin.queue)),
        message_key=storable(key.text)[:255],
        message_key_weak=key.weak,
        message_id=storable(text_of(message.message_id)) if message.message_id else "",
        encoded=kept,
        truncated=truncated or is_cut(message.body.value, message.properties),
        body_text=body_text(message),
        body_kind=message.body_kind.value,
        jms_kind=jms_kind.value if jms_kind is not None and isinstance(jms_kind.value, int) else None,
        content_type=storable(message.content_type)[:200],
        size=size,
        durable=message.durable,
        priority=message.priority,
        properties=typed_list(message.properties),
        annotations=typed_list(message.annotations),
        correlation_id=storable(text_of(message.correlation_id)) if message.correlation_id else "",
        reply_to=storable(message.reply_to),
        created_at_producer=message.created_at,
        delivery_count=message.delivery_count,
        expires_at=expiry_of(message, now),
        seen_at=now,
        state_at=now,
    )


def _made(**values: Any) -> DeadLetter:
    """An unsaved row, as `DeadLetter(**values)` gives it, at a fifth of its cost: there are thousands in a
    second."""
    content = LetterContent.__new__(LetterContent)
    content.__dict__.update(
        _state=ModelState(), letter_id=None, **{name: values.pop(name) for name in _OF_CONTENT}
    )
    row = DeadLetter.__new__(DeadLetter)
    row.__dict__.update(_state=ModelState(), **_DEFAULTS)
    row.__dict__.update(values)
    keep_content(row, content)
    return row


def origin_of(message: Message) -> Origin:
    """Core and STOMP messages carry it as application properties, AMQP messages as annotations."""

    def found(property_name: str, annotation: str) -> Any:
        item = message.properties.get(property_name) or message.annotations.get(annotation)
        return item.value if item is not None else None

    number = found(ORIG_MESSAGE_ID, ANNOTATED_ORIG_MESSAGE_ID)
    return Origin(
        address=_text(found(ORIG_ADDRESS, ANNOTATED_ORIG_ADDRESS)),
        queue=_text(found(ORIG_QUEUE, ANNOTATED_ORIG_QUEUE)),
        message_id=number if isinstance(number, int) and 0 <= number < 2**63 else None,
    )


def origin_queue_of(encoded: bytes) -> str:
    """Returns where it died, as the broker noted; empty where nobody says."""
    try:
        found = read_named_values(encoded, (ORIG_QUEUE,), (ANNOTATED_ORIG_QUEUE,))
    except MessageUndecodable:
        return ""
    name = found.get(ORIG_QUEUE, found.get(ANNOTATED_ORIG_QUEUE))
    return name if isinstance(name, str) else ""


def expiry_of(message: Message, now: datetime) -> datetime | None:
    """Returns when the broker drops it: the producer's word, an instant or a time to live (from when it was
    made, as far as it says so). Messages without either stay for ever."""
    if message.expires_at is not None or not message.ttl_ms:
        return message.expires_at
    try:
        return (message.created_at or now) + timedelta(milliseconds=message.ttl_ms)
    except OverflowError:  # in a year that nobody has to think of
        return None


def typed_list(items: Mapping[str, Typed]) -> list[dict[str, Any]]:
    return [{"name": storable(name), **to_json(item)} for name, item in items.items()]


def body_size(message: Message) -> int:
    value = message.body.value
    if isinstance(value, bytes):
        return len(value)
    if isinstance(value, str):
        return len(value.encode("utf-8", "surrogatepass"))
    return 0 if value is None else len(message.body_section)


def body_text(message: Message) -> str:
    """The head of the body as text, for lists and search; bytes that are no UTF-8 in hexadecimal."""
    value = message.body.value
    if isinstance(value, bytes):
        return _text_of_bytes(value)
    if isinstance(value, str):
        return storable(value[:HEAD_OF_TEXT])
    return text_of(message.body)[:HEAD_OF_TEXT]


def _text_of_bytes(value: bytes) -> str:
    head = value[:HEAD_OF_TEXT]
    try:
        return storable(head.decode())
    except UnicodeDecodeError as error:
        # The cut may have gone through a character.
        if len(head) < len(value) and error.start > len(head) - 4:
            return storable(head[: error.start].decode())
    return f"0x{value[:HEAD_OF_BYTES].hex()}"


def _kept(encoded: bytes, message: Message, size: int) -> tuple[bytes, bool]:
    """The bytes to keep: all, or a message with the same types and properties and the head of the body."""
    if size <= WHOLE_BODY:
        return encoded, False
    value = message.body.value
    if isinstance(value, (bytes, str)):
        head = Typed(message.body.type, value[:HEAD_OF_BODY])
    else:
        head = Typed("string", text_of(message.body)[:HEAD_OF_BODY])
    kind = message.body_kind if message.body_kind is not BodyKind.SEQUENCE else BodyKind.VALUE
    return encode(replace(message, body=head, body_kind=kind)), True


def name_of_queue(text: str) -> str:
    """Returns the name as a row holds it."""
    return storable(text)[:LONGEST_NAME]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
