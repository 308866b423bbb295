"""What the contract suite runs over: the real Artemis and the one in memory, behind the same few methods."""

import itertools
import queue
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from broker.amqp.browser import AmqpBrowser
from broker.amqp.codec import decode, encode
from broker.amqp.connection import AmqpConnection
from broker.amqp.consumer import AmqpConsumer
from broker.amqp.core_message import from_core
from broker.amqp.publisher import AmqpPublisher, transfer
from broker.management.desired_topology import base_topology, setting_topology
from broker.management.queues import QueueFigures, queue_figures
from broker.management.topology import apply
from broker.memory.broker import MemoryBroker
from broker.port import Account, Browser, Consumer, Delivery, Management, Message, Outgoing, Publisher, Settle
from broker.stomp.client import StompManagement
from contract.names import connection_name, dead_letter_queue
from contract.redelivery import RedeliveryPolicy
from contract.typed import Typed
from tests.services import Account as Credentials
from tests.services import ArtemisService

DLA = "MA.DLA"
SERVER = "srv-1.test"
PATIENCE = 30.0
# Long enough for the broker to do what it must not do.
A_MOMENT = 0.7

numbers = itertools.count(1)


@dataclass(frozen=True)
class Setting:
    """A subscription of its own for one test."""

    key: str
    address: str

    @property
    def dead(self) -> str:
        return dead_letter_queue(self.key)


@dataclass(frozen=True)
class Got:
    """A delivery, decoded."""

    tag: int
    message: Message
    at: float

    @property
    def text(self) -> str:
        return str(self.message.body.value)

    @property
    def count(self) -> int:
        return self.message.delivery_count


class Owner:
    """The events of one consumer, in their order."""

    def __init__(self) -> None:
        self.events: queue.SimpleQueue[tuple[str, object]] = queue.SimpleQueue()

    def opened(self) -> None:
        self.events.put(("opened", None))

    def lost(self, reason: str, permanent: bool) -> None:
        self.events.put(("lost", (reason, permanent)))

    def delivered(self, delivery: Delivery) -> None:
        self.events.put(
            ("delivered", Got(delivery.tag, decode(from_core(delivery.encoded)), time.monotonic()))
        )

    def settled(self, tag: int, problem: str | None) -> None:
        self.events.put(("settled", (tag, problem)))

    def wait(self, kind: str, timeout: float = PATIENCE) -> object:
        """The next event of the kind; others before it are dropped."""
        deadline = time.monotonic() + timeout
        while True:
            try:
                found, content = self.events.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                raise AssertionError(f"nothing {kind} within {timeout:g} s") from None
            if found == kind:
                return content

    def got(self, timeout: float = PATIENCE) -> Got:
        content = self.wait("delivered", timeout)
        assert isinstance(content, Got)
        return content

    def answer(self) -> tuple[int, str | None]:
        content = self.wait("settled")
        assert isinstance(content, tuple)
        return content

    def loss(self) -> tuple[str, bool]:
        content = self.wait("lost")
        assert isinstance(content, tuple)
        return content

    def nothing(self, moment: float = A_MOMENT) -> None:
        try:
            kind, content = self.events.get(timeout=moment)
        except queue.Empty:
            return
        raise AssertionError(f"unexpectedly {kind}: {content}")


class House(ABC):
    """A broker with what tests do to it."""

    def __init__(self) -> None:
        self._opened: list[Callable[[], None]] = []

    def setting(
        self,
        *,
        attempts: int = 3,
        delay: int = 50,
        multiplier: float = 1.0,
        exclusive: bool = False,
        address: str | None = None,
    ) -> Setting:
        key = f"t{next(numbers)}-{uuid4().hex[:8]}"
        made = Setting(key, address or f"test.{key}")
        policy = RedeliveryPolicy(
            max_attempts=attempts, delay=delay, multiplier=multiplier, max_delay=100_000
        )
        apply(self.management, setting_topology(key, made.address, policy, exclusive, DLA))
        return made

    def consume(self, setting: Setting, window: int = 10) -> tuple[Consumer, Owner]:
        """A consumer whose link is open."""
        owner = Owner()
        consumer = self.consumer(setting.address, setting.key, owner, window)
        self._opened.append(consumer.stop)
        consumer.start()
        owner.wait("opened")
        return consumer, owner

    def publish(self, destination: str, *texts: str) -> None:
        self.publisher.publish([Outgoing(destination, text_message(text)) for text in texts])

    def figures(self, setting: Setting) -> QueueFigures:
        return queue_figures(self.management, setting.key, setting.address)

    def dead(self, setting: Setting) -> list[Message]:
        return self.look(DLA, setting.dead)

    def look(self, address: str, name: str, limit: int = 1000) -> list[Message]:
        found = [browsed.message for browsed in self.browser.browse(address, name, limit=limit)]
        return [message for message in found if message is not None]

    def until_dead(self, setting: Setting, count: int) -> list[Message]:
        eventually(lambda: len(self.dead(setting)) >= count)
        found = self.dead(setting)
        assert len(found) == count
        return found

    def die(self, setting: Setting, *texts: str) -> list[Message]:
        """Publishes and rejects: the letters."""
        consumer, owner = self.consume(setting)
        self.publish(setting.address, *texts)
        for _ in texts:
            consumer.settle([(owner.got().tag, Settle.REJECT)])
        letters = self.until_dead(setting, len(texts))
        consumer.stop()
        return letters

    def close(self) -> None:
        while self._opened:
            self._opened.pop()()

    publisher: Publisher
    browser: Browser
    management: Management

    @abstractmethod
    def consumer(self, address: str, name: str, owner: Owner, window: int) -> Consumer: ...

    @abstractmethod
    def publish_as_a_stranger(self, address: str, message: Message) -> None:
        """Past the checks of our own publisher, as any other client may send it."""

    @abstractmethod
    def kill(self) -> None:
        """kill -9 of the broker."""

    @abstractmethod
    def restart(self) -> None: ...


class RealHouse(House):
    def __init__(self, service: ArtemisService) -> None:
        super().__init__()
        self.service = service
        kma, publisher, ops = service.kma, service.publisher, service.ops

        def account(url: str, who: Credentials) -> Account:
            # On a network of tests there is nobody else.
            return Account(url, who.user, who.password, service.trust, in_clear=True)

        amqp, stomp = service.amqp_url, service.stomp_address
        self.kma, self.publishing, self.ops = (account(amqp, who) for who in (kma, publisher, ops))
        self.stomp_publishing, self.stomp_ops = account(stomp, publisher), account(stomp, ops)
        self.publisher = AmqpPublisher(self.publishing)
        self.browser = AmqpBrowser(self.ops)
        self.management = StompManagement(self.stomp_ops, "MA.reply.tests")
        apply(self.management, base_topology(DLA))

    def consumer(self, address: str, name: str, owner: Owner, window: int) -> Consumer:
        return AmqpConsumer(self.kma, address, name, owner, window, name=connection_name(SERVER))

    def close(self) -> None:
        super().close()
        self.publisher.close()
        self.management.close()

    def publish_as_a_stranger(self, address: str, message: Message) -> None:
        connection = AmqpConnection(self.publishing)
        connection.open()
        sender = connection.sender(address)
        connection.opened(sender, PATIENCE)
        transfer(sender, encode(message), 1)
        connection.close(timeout=PATIENCE)

    def kill(self) -> None:
        self.service.kill()

    def restart(self) -> None:
        self.service.start()


class MemoryHouse(House):
    def __init__(self) -> None:
        super().__init__()
        self.broker = MemoryBroker()
        self.publisher = self.broker.publisher()
        self.browser = self.broker.browser()
        self.management = self.broker.management()
        apply(self.management, base_topology(DLA))

    def consumer(self, address: str, name: str, owner: Owner, window: int) -> Consumer:
        return self.broker.consumer(address, name, owner, window, name=connection_name(SERVER))

    def publish_as_a_stranger(self, address: str, message: Message) -> None:
        self.broker.take(address, message)

    def kill(self) -> None:
        self.broker.crash()

    def restart(self) -> None:
        self.broker.restart()


def text_message(text: str, **fields: Any) -> Message:
    return Message(body=Typed("string", text), **fields)


def eventually(holds: Callable[[], object], timeout: float = PATIENCE) -> None:
    """The broker answers some questions a moment behind what it did."""
    begun = time.monotonic()
    while not holds():
        waited = time.monotonic() - begun
        assert waited < timeout, "it never came to be"
        time.sleep(pause(waited))


def pause(waited: float) -> float:
    """Seconds until the next question, after so many: each question costs the broker some milliseconds."""
    return min(0.2, max(0.02, waited / 8))


def settle_all(consumer: Consumer, deliveries: Sequence[Got], how: Settle) -> None:
    consumer.settle([(got.tag, how) for got in deliveries])


def _origin_name(letter: Message, what: str) -> str:
    annotated = f"x-opt-ORIG-{what}"
    return annotated if annotated in letter.annotations else f"_AMQ_ORIG_{what.replace('-', '_')}"


def orig_id(letter: Message) -> int:
    """AMQP letters have it in an annotation, Core ones in a property."""
    return int({**letter.annotations, **letter.properties}[_origin_name(letter, "MESSAGE-ID")].value)


def orig_queue(letter: Message) -> str:
    return str({**letter.annotations, **letter.properties}[_origin_name(letter, "QUEUE")].value)
