"""A message of ours on its way to the wire."""

from dataclasses import replace

from broker.amqp_codec import encode
from broker.port import Message
from contract.properties import BROKER_ID, NOT_CONVERTIBLE
from contract.typed import Typed


def outgoing_bytes(message: Message) -> bytes:
    """What goes to the wire. The delivery count is the broker's note, and why a Core message could not be
    converted is ours: a copy of a dead letter begins anew.

    Raises ValueError for what AMQP cannot carry, and for a text outside of the body that is not good Unicode:
    the broker takes such a message, but no filter of its queues can read it, so its dead letter would reach
    the feed only.
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
        raise ValueError(f"{what} is not good Unicode: {error.reason}") from error


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
