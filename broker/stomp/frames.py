"""A message as a SEND frame: body and headers."""

import time
from collections.abc import Iterator

from broker.port import BodyKind, Message, Outgoing
from contract.typed import Typed, text_of


def frame_of(outgoing: Outgoing) -> tuple[str | bytes, dict[str, str]]:
    """Raises ValueError where STOMP cannot carry the message unharmed."""
    message = outgoing.message
    headers = {_escaped(name): _text(item) for name, item in message.properties.items()}
    headers |= dict(_jms_headers(message))
    for name, value in headers.items():
        _check(name + value, f"the property {name!r:.80}")
    if "::" not in outgoing.destination:
        headers["destination-type"] = "MULTICAST"
    body: str | bytes
    if message.body_kind is BodyKind.VALUE and message.body.type in ("string", "null"):
        body = message.body.value or ""
        _check(body, "the text")
    elif message.body.type == "binary":
        body = bytes(message.body.value)
        headers["content-length"] = str(len(body))
    else:
        raise ValueError(f"STOMP has no body of type {message.body.type}: publish this message over AMQP")
    return body, headers


def _text(item: Typed) -> str:
    """Not `text_of` for texts: it replaces what cannot be stored, and here that is refused."""
    return item.value if isinstance(item.value, str) else text_of(item)


def _check(text: str, what: str) -> None:
    if "\0" in text:
        raise ValueError(f"STOMP ends a frame at NUL, and {what} holds one: publish this message over AMQP")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"{what} is not valid Unicode: {error.reason}") from error


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
