"""A real broker with the MA's topology on it, producers of every kind, and a way to let messages die."""

import os
import queue
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field

from broker.amqp.browser import AmqpBrowser
from broker.amqp.codec import encode
from broker.amqp.connection import AmqpConnection
from broker.amqp.consumer import AmqpConsumer
from broker.amqp.publisher import AmqpPublisher, transfer
from broker.management.desired_topology import base_topology, setting_topology
from broker.management.topology import apply
from broker.port import Account, Delivery, Message, Outgoing, Settle
from broker.stomp.client import StompManagement, StompPublisher
from contract.redelivery import RedeliveryPolicy
from dlq.index.broker import LetterQueues
from dlq.index.feed import Feed, Inbox
from tests.broker.houses import eventually
from tests.services import ArtemisService

DLA = "MA.DLA"
ONCE = RedeliveryPolicy(max_attempts=1, delay=0)


@dataclass
class Seen:
    """A consumer's events: what was delivered."""

    deliveries: "queue.SimpleQueue[Delivery]" = field(default_factory=queue.SimpleQueue)

    def opened(self) -> None: ...

    def lost(self, reason: str, permanent: bool) -> None: ...

    def delivered(self, delivery: Delivery) -> None:
        self.deliveries.put(delivery)

    def settled(self, tag: int, problem: str | None) -> None: ...


class Stage:
    """Each test uses keys of its own, so that the broker can be shared; the feed is drained before each."""

    def __init__(self, service: ArtemisService) -> None:
        self.service = service
        self.management = StompManagement(self.account("ops", "stomp"), f"MA.reply.stage-{os.getpid()}")
        self.publisher = AmqpPublisher(self.account("publisher", "amqp"))
        self.stomp = StompPublisher(self.account("publisher", "stomp"))
        self.queues = LetterQueues(self.management, AmqpBrowser(self.account("ops", "amqp")), DLA)
        apply(self.management, base_topology(DLA))

    def account(self, who: str, protocol: str) -> Account:
        known = getattr(self.service, who)
        url = self.service.amqp_url if protocol == "amqp" else self.service.stomp_address
        return Account(url, known.user, known.password)

    def publish_unchecked(self, address: str, message: Message) -> None:
        """Past the checks of our own publisher, as any other client may send it."""
        connection = AmqpConnection(self.account("publisher", "amqp"))
        connection.open()
        sender = connection.sender(address)
        connection.opened(sender, 30.0)
        transfer(sender, encode(message), 1)
        connection.close(timeout=30.0)

    def close(self) -> None:
        for part in (self.management, self.publisher, self.stomp):
            part.close()

    def key(self, name: str = "s") -> str:
        """A setting of its own on an address `t.<key>`."""
        key = f"{name}-{uuid.uuid4().hex[:8]}"
        self.add(key, f"t.{key}")
        return key

    def add(self, key: str, address: str, policy: RedeliveryPolicy = ONCE) -> None:
        apply(self.management, setting_topology(key, address, policy, False, DLA))

    def publish(self, address: str, *messages: Message) -> None:
        self.publisher.publish([Outgoing(address, message) for message in messages])

    def consume(self, key: str, count: int, settle: Settle, address: str = "") -> list[bytes]:
        """Takes `count` messages of a subscription as a KMA does; their encoded bytes."""
        seen = Seen()
        consumer = AmqpConsumer(self.account("kma", "amqp"), address or f"t.{key}", key, seen, count)
        consumer.start()
        try:
            found = [seen.deliveries.get(timeout=20) for _ in range(count)]
            consumer.settle([(delivery.tag, settle) for delivery in found])
        finally:
            consumer.stop()
        return [delivery.encoded for delivery in found]

    def feed(self) -> Feed:
        inbox = Inbox()
        account = self.account("ops", "amqp")
        consumer = AmqpConsumer(account, DLA, "DLQ.feed", inbox, core=True)
        return Feed(consumer, inbox, self.management, AmqpPublisher(account), DLA)

    def follow(self, done: Callable[[], bool], seconds: float = 60) -> None:
        """Runs the feed in this thread until `done`."""
        feed = self.feed()
        feed.start()
        try:
            for _ in range(int(seconds * 5)):
                feed.step(0.2)
                if done():
                    return
            raise AssertionError("the feed did not bring what was expected")
        finally:
            feed.stop()

    def drain_feed(self) -> None:
        """What other tests left in the feed is nothing to this one."""
        self.management.call("queue.DLQ.feed", "removeAllMessages")

    def count(self, queue_name: str) -> int:
        return int(self.management.attribute(f"queue.{queue_name}", "MessageCount"))

    def until_consumed(self, queue_name: str) -> None:
        eventually(lambda: int(self.management.attribute(f"queue.{queue_name}", "ConsumerCount")), 60)

    def until_dead(self, queue_name: str, count: int) -> None:
        """Waits for so many letters there: what is refused is dead a moment later."""
        eventually(lambda: self.count(queue_name) == count, 60)

    def feed_is_empty(self) -> bool:
        """Waits a moment for it: an accept is not confirmed."""
        deadline = time.monotonic() + 5
        while self.count("DLQ.feed") and time.monotonic() < deadline:
            time.sleep(0.05)
        return self.count("DLQ.feed") == 0

    def ids(self, queue_name: str, address: str) -> list[str]:
        """The message ids that lie in a queue."""
        browsed = self.queues.browser.browse(address, queue_name, limit=100_000)
        return [
            str(each.message.message_id.value) for each in browsed if each.message and each.message.message_id
        ]
