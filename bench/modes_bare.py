"""Bare Proton consumers as its documentation shows them: a container, a handler, credit 100. Each answers its
rate per second, from the open link to the last settlement."""

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from proton.handlers import MessagingHandler, TransactionHandler
from proton.reactor import Container

from bench.place import Place

CREDIT = 100
BATCH = 100


@dataclass(frozen=True, slots=True)
class Queue:
    """`target`: where something is sent for each message, empty for nothing."""

    source: str
    messages: int
    target: str = ""


class _Receiver(MessagingHandler):
    """Accepts each when it has been handled."""

    def __init__(self, place: Place, queue: Queue, *, auto_accept: bool = True) -> None:
        super().__init__(prefetch=CREDIT, auto_accept=auto_accept)
        self.place, self.queue = place, queue
        self.left = queue.messages
        self.began = self.ended = 0.0

    def on_start(self, event: Any) -> None:
        self.container, place = event.container, self.place
        self.connection = self.container.connect(
            place.amqp_url, user=place.user, password=place.password, allowed_mechs="PLAIN", reconnect=False
        )
        self.opened()

    def opened(self) -> None:
        self.container.create_receiver(self.connection, self.queue.source)

    def on_link_opened(self, event: Any) -> None:
        if event.link.is_receiver:
            self.began = time.monotonic()

    def on_message(self, event: Any) -> None:
        _ = event.message.body
        self.done(1)

    def done(self, number: int) -> None:
        self.left -= number
        if not self.left:
            self.ended = time.monotonic()
            self.connection.close()


class _InBatches(_Receiver):
    def __init__(self, place: Place, queue: Queue) -> None:
        super().__init__(place, queue, auto_accept=False)
        self.waiting: list[Any] = []

    def on_message(self, event: Any) -> None:
        _ = event.message.body
        self.waiting.append(event.delivery)
        if len(self.waiting) >= BATCH or len(self.waiting) == self.left:
            for delivery in self.waiting:
                delivery.update(delivery.ACCEPTED)
                delivery.settle()
            number = len(self.waiting)
            self.waiting.clear()
            self.done(number)


class _InTransactions(_Receiver, TransactionHandler):
    """One for each message: what is sent, the acceptance, the commit, which the broker confirms."""

    def __init__(self, place: Place, queue: Queue) -> None:
        super().__init__(place, queue, auto_accept=False)
        self.waiting: deque[tuple[Any, Any]] = deque()
        self.transaction: Any = None

    def opened(self) -> None:
        if self.queue.target:
            self.sender = self.container.create_sender(self.connection, self.queue.target)
        super().opened()
        self.container.declare_transaction(self.connection, handler=self)

    def on_message(self, event: Any) -> None:
        self.waiting.append((event.message, event.delivery))
        self.advance()

    def on_transaction_declared(self, event: Any) -> None:
        self.transaction = event.transaction
        self.advance()

    def advance(self) -> None:
        if self.transaction is None or not self.waiting:
            return
        message, delivery = self.waiting.popleft()
        transaction, self.transaction = self.transaction, None
        _ = message.body
        if self.queue.target:
            transaction.send(self.sender, message)
        transaction.accept(delivery)
        transaction.commit()

    def on_transaction_committed(self, event: Any) -> None:
        self.done(1)
        if self.left:
            self.container.declare_transaction(self.connection, handler=self)

    def on_transaction_commit_failed(self, event: Any) -> None:
        raise RuntimeError("a transaction of the reference failed")


HANDLERS: dict[str, Callable[[Place, Queue], _Receiver]] = {
    "each": _Receiver,
    "batches": _InBatches,
    "transactions": _InTransactions,
}


def consume(how: str, place: Place, queue: Queue) -> float:
    receiver = HANDLERS[how](place, queue)
    Container(receiver).run()
    return queue.messages / (receiver.ended - receiver.began)
