"""What the memory broker tells of messages that are not handled yet, and what it does to one: as the real
one."""

import json
from collections.abc import Callable
from typing import Any

from broker.management.waiting_messages import FIRST
from broker.memory.store import Reference, Store, StoredQueue
from contract.names import (
    ANNOTATED_ORIG_ADDRESS,
    ANNOTATED_ORIG_MESSAGE_ID,
    ANNOTATED_ORIG_QUEUE,
    ORIG_ADDRESS,
    ORIG_MESSAGE_ID,
    ORIG_QUEUE,
)
from contract.typed import text_of

LONGEST_TEXT = 256
# The real one shows where a message was under both names.
_ORIGINS = {
    ANNOTATED_ORIG_ADDRESS: ORIG_ADDRESS,
    ANNOTATED_ORIG_MESSAGE_ID: ORIG_MESSAGE_ID,
    ANNOTATED_ORIG_QUEUE: ORIG_QUEUE,
}


def operations(store: Store) -> dict[str, Callable[..., Any]]:
    """By name, each of a queue."""
    return {
        "listMessagesAsJSON": lambda queue, _filter: _listed(list(queue.ready)[:FIRST]),
        "listScheduledMessagesAsJSON": lambda queue: _listed(queue.scheduled),
        "listDeliveringMessagesAsJSON": _delivering,
        "deliverScheduledMessage": lambda queue, number: _deliver(
            store, queue, lambda each: each.id == number
        ),
        "deliverScheduledMessages": lambda queue, _filter: _deliver(store, queue, lambda each: True),
        "sendMessageToDeadLetterAddress": lambda queue, number: _die(store, queue, number),
    }


def consumers(store: Store) -> list[dict[str, Any]]:
    """The rows of the broker's listConsumers."""
    return [
        {
            "session": taker.name,
            "clientID": taker.name,
            "queue": queue.name,
            "remoteAddress": "in this process",
            "messagesInTransit": str(len(taker.holds())),
            "lastDeliveredTime": int(taker.delivered_at * 1000),
        }
        for queue in store.queues.values()
        for taker in queue.takers
    ]


def take_out(queue: StoredQueue, number: int) -> Reference | None:
    """Out of what waits or is delayed; None: it is not there, or in delivery."""
    for kept in (queue.ready, queue.scheduled):
        for reference in kept:
            if reference.id == number:
                kept.remove(reference)
                return reference
    return None


def _deliver(store: Store, queue: StoredQueue, chosen: Callable[[Reference], bool]) -> None:
    for reference in queue.scheduled:
        if chosen(reference):
            reference.due = store.clock()
    store.tick()


def _die(store: Store, queue: StoredQueue, number: int) -> bool:
    reference = take_out(queue, number)
    if reference is None:
        return False
    store.die(reference)
    return True


def _delivering(queue: StoredQueue) -> str:
    told = [
        {
            "consumerName": f"ServerConsumer [id=memory:{taker.name}:0, filter=null]",
            "elements": [_row(reference) for reference in taker.holds() if reference.queue is queue],
        }
        for taker in queue.takers
    ]
    return json.dumps(told)


def _listed(references: list[Reference]) -> str:
    return json.dumps([_row(reference) for reference in references])


def _row(reference: Reference) -> dict[str, Any]:
    message = reference.message
    origins = {
        own: message.annotations[name].value for name, own in _ORIGINS.items() if name in message.annotations
    }
    row = {name: _cut(item.value) for name, item in message.properties.items()}
    row |= origins | {name: item.value for name, item in message.annotations.items() if name in _ORIGINS}
    if message.message_id is not None:
        row["userID"] = f"ID:{text_of(message.message_id)}"
    return row | {
        "messageID": reference.id,
        "address": reference.queue.address,
        "_AMQ_AD": reference.queue.address,
        "durable": message.durable,
        "priority": message.priority,
        "expiration": 0,
        "timestamp": int(message.created_at.timestamp() * 1000) if message.created_at else 0,
    }


def _cut(value: Any) -> Any:
    if isinstance(value, bytes):
        return list(value)
    if not isinstance(value, str | int | float | bool):
        return "" if value is None else str(value)
    if isinstance(value, str) and len(value) > LONGEST_TEXT:
        return f"{value[:LONGEST_TEXT]}, + {len(value) - LONGEST_TEXT} more"
    return value
