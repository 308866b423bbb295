"""Typed publishing over AMQP, and how a message is handed to a link, which transactions share."""

import time
from collections.abc import Sequence
from typing import Any

from proton import Delivery, Disposition, Sender

from broker.amqp.codec import encode_outgoing
from broker.amqp.connection import DELIVERY, LINK_ENDS, LINK_FLOW, AmqpConnection, refusal
from broker.port import (
    AccessRefused,
    Account,
    AddressUnknown,
    BrokerError,
    BrokerTimeout,
    BrokerUnavailable,
    Outgoing,
)

# States of a delivery (AMQP 1.0 part 4, section 4.5): what was sent or taken within a transaction.
TRANSACTIONAL = 0x34
ACCEPTED = 0x24


def transfer(sender: Sender, encoded: bytes, tag: int, transaction: Any = None) -> Delivery:
    """Hands one message to the engine; the link must have credit. Its outcome comes as a DELIVERY event."""
    delivery = sender.delivery(str(tag))
    sender.stream(encoded)
    sender.advance()
    if transaction is not None:
        delivery.local.data = [transaction]
        delivery.update(TRANSACTIONAL)
    return delivery


def problem_of(delivery: Delivery) -> BrokerError | None:
    """Why the broker did not take the message, None when it did. Call it when the delivery is settled."""
    state = delivery.remote_state
    if state == Delivery.ACCEPTED:
        return None
    if state == TRANSACTIONAL:
        return (
            None
            if _accepted_within(delivery.remote)
            else BrokerUnavailable("not accepted into the transaction")
        )
    if state == Delivery.REJECTED:
        error = refusal(delivery.remote.condition, "the broker rejected the message")
        return AccessRefused(str(error)) if "permission=" in str(error) else error
    return BrokerUnavailable(f"the broker did not accept the message: state {int(state)}")


def _accepted_within(remote: Disposition) -> bool:
    data: Any = remote.data
    if not data or len(data) < 2 or data[1] is None:
        return True  # no provisional outcome: it is decided by the commit
    return data[1].descriptor in (ACCEPTED, "amqp:accepted:list")


# -- publisher -----------------------------------------------------------------------------------------------


# Nobody steps the connection between two calls, so an idle one is no longer trusted: the broker drops it
# after 10-15 s.
TRUSTED = 4.0
# Messages on their way at a time: bounds the memory that their copies in the engine take.
WINDOW = 500
MOST_SENDERS = 64


class AmqpPublisher:
    """A `Publisher`. Connects at the first use; not safe between threads. `timeout` seconds for each
    answer."""

    def __init__(self, account: Account, timeout: float = 30.0) -> None:
        self._account = account
        self._timeout = timeout
        self._connection: AmqpConnection | None = None
        self._senders: dict[str, Sender] = {}
        self._used_at = 0.0
        self._tags = 0

    def publish(self, messages: Sequence[Outgoing]) -> None:
        encoded = [(outgoing.destination, encode_outgoing(outgoing.message)) for outgoing in messages]
        if not encoded:
            return
        try:
            self._publish(self._connected(), encoded)
        except AddressUnknown:
            self._used_at = 0.0  # the link is refused, the connection is new next time
            raise
        except BrokerError:
            self.close()
            raise
        self._used_at = time.monotonic()

    def close(self) -> None:
        connection, self._connection = self._connection, None
        self._senders.clear()
        if connection is not None:
            connection.close(timeout=1.0)

    def _connected(self) -> AmqpConnection:
        if self._connection is not None and time.monotonic() - self._used_at < TRUSTED:
            return self._connection
        self.close()
        connection = AmqpConnection(self._account)
        try:
            connection.open()
        except BrokerError:
            connection.close()
            raise
        self._connection = connection
        return connection

    def _publish(self, connection: AmqpConnection, encoded: Sequence[tuple[str, bytes]]) -> None:
        # All links first: an unknown address is refused before anything was sent.
        for destination in dict.fromkeys(destination for destination, _ in encoded):
            self._sender(connection, destination)
        outstanding: set[Delivery] = set()
        deadline = time.monotonic() + self._timeout
        for destination, content in encoded:
            sender = self._sender(connection, destination)
            while sender.credit <= 0 or len(outstanding) >= WINDOW:
                deadline = self._wait(connection, outstanding, deadline)
            self._tags += 1
            outstanding.add(transfer(sender, content, self._tags))
        while outstanding:
            deadline = self._wait(connection, outstanding, deadline)

    def _sender(self, connection: AmqpConnection, destination: str) -> Sender:
        if destination in self._senders:
            return self._senders[destination]
        if len(self._senders) >= MOST_SENDERS:
            self._senders.pop(next(iter(self._senders))).close()
        sender = connection.sender(destination)
        connection.opened(sender, self._timeout)
        self._senders[destination] = sender
        return sender

    def _wait(self, connection: AmqpConnection, outstanding: set[Delivery], deadline: float) -> float:
        """Takes what happened; returns the new deadline, which moves on with every answer."""
        for kind, context in connection.step(max(0.0, deadline - time.monotonic())):
            if kind == DELIVERY and context in outstanding and context.settled:
                self._take(context, outstanding)
                deadline = time.monotonic() + self._timeout
            elif kind == LINK_FLOW:
                deadline = time.monotonic() + self._timeout
            elif kind in LINK_ENDS and context in self._senders.values():
                raise refusal(context.remote_condition, "the broker closed the link")
        if time.monotonic() >= deadline:
            raise BrokerTimeout(
                f"no answer to a message within {self._timeout:g} s; it may have been accepted"
            )
        return deadline

    def _take(self, delivery: Delivery, outstanding: set[Delivery]) -> None:
        outstanding.discard(delivery)
        problem = problem_of(delivery)
        delivery.settle()
        if problem is not None:
            raise problem
