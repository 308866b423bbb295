"""Dead letters that no queue but the feed took: copies for the queue of the unknown. Pure.

A filter of the broker reads every property of a dead letter, and matches nothing where one is no good
Unicode. Such a dead letter reaches the feed alone; its copy has the bad characters replaced, or it could not
be sent at all.
"""

import time
from dataclasses import replace
from operator import attrgetter
from typing import Any

from broker.management.queues import find
from broker.port import Management, Message
from contract.names import (
    ANNOTATED_ORIG_ADDRESS,
    ANNOTATED_ORIG_MESSAGE_ID,
    ANNOTATED_ORIG_QUEUE,
    DUPLICATE_ID,
    ORIG_ADDRESS,
    ORIG_MESSAGE_ID,
    ORIG_QUEUE,
    subscription_of,
)
from contract.typed import Typed, storable

_TEXTS = ("to", "subject", "reply_to", "content_type", "content_encoding", "group_id", "reply_to_group_id")
_texts_of = attrgetter(*_TEXTS)
_ANNOTATIONS = {
    ORIG_ADDRESS: ANNOTATED_ORIG_ADDRESS,
    ORIG_QUEUE: ANNOTATED_ORIG_QUEUE,
    ORIG_MESSAGE_ID: ANNOTATED_ORIG_MESSAGE_ID,
}
_PLAIN, _NESTED = frozenset({"string", "symbol"}), frozenset({"list", "array", "described", "map"})


def mended(message: Message) -> Message:
    """`message` with good Unicode outside of its body; equal to it where nothing was wrong."""
    texts: dict[str, Any] = {name: _text(getattr(message, name)) for name in _TEXTS}
    properties = {_text(name): _item(item) for name, item in message.properties.items()}
    annotations = {_text(name): _item(item) for name, item in message.annotations.items()}
    return replace(message, properties=properties, annotations=annotations, **texts)


def has_bad_text(message: Message) -> bool:
    """Returns whether filters cannot read it: `mended` would change something."""
    items = (*message.properties.values(), *message.annotations.values())
    texts = [item.value for item in items if item.type in _PLAIN]
    named = "".join((*message.properties, *message.annotations, *_texts_of(message), *texts))
    return _is_bad(named) or any(_item(item) != item for item in items if item.type in _NESTED)


def copy_of(message: Message, unique: str) -> Message:
    """What is sent. The broker drops a second one with the same `unique`: it may be sent again after a crash.

    Where a Core client's letter died stands in its properties, and the queue of the unknown takes no message
    that has them: in the copy it stands in annotations, as an AMQP client's dead letter has it.
    """
    copy = mended(message)
    said = {_ANNOTATIONS[name]: item for name, item in copy.properties.items() if name in _ANNOTATIONS}
    rest = {name: item for name, item in copy.properties.items() if name not in _ANNOTATIONS}
    return replace(
        copy,
        properties={**rest, DUPLICATE_ID: Typed("string", unique)},
        annotations={**copy.annotations, **said},
    )


def _is_bad(text: str) -> bool:
    if text.isascii():
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _text(text: str) -> str:
    return storable(text) if _is_bad(text) else text


def _item(item: Typed) -> Typed:
    if item.type in ("string", "symbol"):
        return Typed(item.type, _text(item.value))
    if item.type in ("list", "array", "described"):
        return Typed(item.type, tuple(_item(part) for part in item.value))
    if item.type == "map":
        return Typed(item.type, tuple((_item(key), _item(value)) for key, value in item.value))
    return item


# -- existing dead-letter queues, asked for rarely -----------------------------------------------------------
# A queue that exists stays; one that does not may come.


# Seconds for which an answer holds.
SEEN_HOLDS = 60.0
MISSED_HOLDS = 1.0


class QueueNames:
    def __init__(self, management: Management) -> None:
        self._management = management
        self._seen: dict[str, float] = {}
        self._missed: dict[str, float] = {}

    def has(self, queue: str) -> bool:
        """Returns whether the queue exists. Raises BrokerUnavailable: nobody knows."""
        now = time.monotonic()
        if now < self._seen.get(queue, 0.0):
            return True
        if now < self._missed.get(queue, 0.0):
            return False
        if find(self._management, "listQueues", queue) is None:
            self._missed[queue] = now + MISSED_HOLDS
            return False
        self._seen[queue] = now + SEEN_HOLDS
        return True

    def takes(self, queue: str, origin: str) -> bool:
        """Returns whether a dead letter of the queue `origin` goes there. One beside a subscription is not in
        the filter of a queue that was made before there were any: the broker forgets a filter that was
        changed when it restarts. Raises BrokerUnavailable: nobody knows."""
        if origin == subscription_of(origin):
            return True
        found = find(self._management, "listQueues", queue)
        return found is not None and f"'{origin}'" in found["filter"]
