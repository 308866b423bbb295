"""Dead letters on a real broker: published, then refused, as a setting's own messages die."""

import json
import queue
import time
from contextlib import suppress

from bench.dlq import DLA
from bench.place import Place
from broker.amqp.consumer import AmqpConsumer
from broker.amqp.publisher import AmqpPublisher
from broker.management.desired_topology import base_topology, setting_topology
from broker.management.queues import find
from broker.management.topology import apply
from broker.port import BrokerTimeout, Delivery, Management, Message, Outgoing, Settle
from contract.names import FEED, dead_letter_queue
from contract.redelivery import RedeliveryPolicy
from contract.typed import Typed

# Bytes of a body, and seconds for the broker to take a step.
SIZE = 1000
PATIENCE = 120.0
AT_A_TIME = 5_000


class _Refusing:
    """A consumer's events: whatever comes is refused, so it dies."""

    def __init__(self) -> None:
        self.deliveries: queue.SimpleQueue[Delivery] = queue.SimpleQueue()

    def opened(self) -> None: ...

    def lost(self, reason: str, permanent: bool) -> None: ...

    def delivered(self, delivery: Delivery) -> None:
        self.deliveries.put(delivery)

    def settled(self, tag: int, problem: str | None) -> None: ...


def provision(management: Management, key: str) -> str:
    """The setting's queues at the broker; the address of its messages."""
    address = f"bench.{key}"
    apply(management, base_topology(DLA))
    apply(management, setting_topology(key, address, RedeliveryPolicy(max_attempts=1), False, DLA))
    return address


def make_letters(
    place: Place, management: Management, key: str, number: int, size: int = SIZE, *, fed: bool = True
) -> None:
    """`number` messages of `size` bytes die in the setting `key`, which is made. Each is in its dead-letter
    queue afterwards, and if `fed` in the feed, which is empty otherwise."""
    address = provision(management, key)
    if not fed:
        empty_feed(management, again=False)
    dead = dead_letter_queue(key)
    before = count(management, dead)
    _publish(place, address, key, number, size)
    _refuse(place, address, key, number)
    deadline = time.monotonic() + PATIENCE
    while count(management, dead) < before + number:
        if time.monotonic() > deadline:
            raise RuntimeError(f"{count(management, dead)} of {before + number} letters lie in {dead}")
        time.sleep(0.05)
    apply(management, base_topology(DLA))


def empty_feed(management: Management, *, again: bool = True) -> None:
    """What is in it is in the index already. Made anew: after `removeAllMessages` of a queue that pages the
    broker may count less than nothing (-127 was seen), and a job that sees no empty feed walks its queue
    first."""
    feed = dead_letter_queue(FEED)
    with suppress(BrokerTimeout):  # a million take longer than an answer may
        management.call("broker", "destroyQueue", feed, False, False)
    deadline = time.monotonic() + PATIENCE
    while find(management, "listQueues", feed) is not None:
        if time.monotonic() > deadline:
            raise RuntimeError(f"{feed} does not go away")
        time.sleep(0.5)
    if again:
        apply(management, base_topology(DLA))


def count(management: Management, queue_name: str) -> int:
    return int(management.attribute(f"queue.{queue_name}", "MessageCount"))


def _publish(place: Place, address: str, key: str, number: int, size: int) -> None:
    publisher = AmqpPublisher(place.amqp)
    properties = {"kind": Typed("string", "standard"), "tenant": Typed("string", key), "n": Typed("long", 7)}
    try:
        for start in range(0, number, AT_A_TIME):
            publisher.publish(
                [
                    Outgoing(address, _message(f"{key}-{n}", properties, size))
                    for n in range(start, min(start + AT_A_TIME, number))
                ]
            )
    finally:
        publisher.close()


def _message(message_id: str, properties: dict[str, Typed], size: int) -> Message:
    text = json.dumps({"order": message_id, "note": "x" * size})[:size]
    return Message(
        body=Typed("string", text),
        message_id=Typed("string", message_id),
        properties=properties,
        content_type="application/json",
    )


def _refuse(place: Place, address: str, key: str, number: int) -> None:
    seen = _Refusing()
    consumer = AmqpConsumer(place.amqp, address, key, seen, prefetch=1000)
    consumer.start()
    try:
        for _ in range(number):
            delivery = seen.deliveries.get(timeout=PATIENCE)
            consumer.settle([(delivery.tag, Settle.REJECT)])
    finally:
        consumer.stop(PATIENCE)
