"""A message as a SEND frame: body and headers."""

import time
from collections.abc import Iterator

from broker.port import BodyKind, Message, Outgoing
from contract.typed import text_of


def frame_of(outgoing: Outgoing) -> tuple[str | bytes, dict[str, str]]:
    """Raises ValueError where STOMP cannot carry the message unharmed."""
    message = outgoing.message
    headers = {_escaped(name): text_of(item) for name, item in message.properties.items()}
    headers |= dict(_jms_headers(message))
    if "::" not in outgoing.destination:
        headers["destination-type"] = "MULTICAST"
    body: str | bytes
    if message.body_kind is BodyKind.VALUE and message.body.type in ("string", "null"):
        body = message.body.value or ""
        if "\0" in body:
            raise ValueError("STOMP ends a text at NUL: publish this message over AMQP")
    elif message.body.type == "binary":
        body = bytes(message.body.value)
        headers["content-length"] = str(len(body))
    else:
        raise ValueError(f"STOMP has no body of type {message.body.type}: publish this message over AMQP")
    return body, headers


def _escaped(name: str) -> str:
    """stomp.py escapes values only: a line break in a name would add headers of the sender's choice."""
    for plain, escaped in (("\\", "\\\\"), ("\r", "\\r"), ("\n", "\\n"), (":", "\\c")):
        name = name.replace(plain, escaped)
    return name


def _jms_headers(message: Message) -> Iterator[tuple[str, str]]:
    yield "persistent", "true" if message.durable else "false"
    if message.priority != 4:
        yield "priority", str(message.priority)
    if message.ttl_ms:
        yield "expires", str(int(time.time() * 1000) + message.ttl_ms)
    if message.correlation_id is not None:
        yield "correlation-id", text_of(message.correlation_id)
    if message.reply_to:
        yield "reply-to", message.reply_to
    if message.subject:
        yield "type", message.subject
    if message.content_type:
        yield "content-type", message.content_type
