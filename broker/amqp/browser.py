"""Looking at a queue over AMQP without consuming it."""

import time
from collections.abc import Iterator

from proton import Link, Receiver, Terminus

from broker.amqp.codec import decode
from broker.amqp.connection import DELIVERY, LINK_ENDS, AmqpConnection, refusal
from broker.amqp.core_message import from_core
from broker.port import Account, BrokerTimeout, Browsed, Message, MessageUndecodable

# Messages asked for at a time: bounds what is held in memory here, and how often the broker is asked.
STEP = 200
# Seconds without a message after which a walk asks whether there are more.
GRACE = 0.05
# Seconds without a message after which the queue may be at its end.
QUIET = 0.1
# Messages and bytes that a walk has on their way at a time; at first few, as nobody knows how large they are.
FIRST, MOST, MOST_BYTES = 50, 1000, 32 * 1024 * 1024


class AmqpBrowser:
    """A `Browser`. Each walk has a connection of its own; take the messages briskly, within seconds each."""

    def __init__(self, account: Account, timeout: float = 30.0) -> None:
        self._account = account
        self._timeout = timeout

    def browse(self, address: str, queue: str, *, limit: int) -> Iterator[Browsed]:
        connection = AmqpConnection(self._account)
        try:
            receiver = self._opened(connection, address, queue)
            left = limit
            while left > 0:
                wanted = min(left, STEP)
                receiver.flow(wanted - receiver.credit)
                found = self._piece(connection, receiver, wanted)
                if not found:
                    return
                for encoded in found:
                    yield Browsed(encoded, _message(encoded))
                left -= len(found)
        finally:
            connection.close(timeout=1.0)

    def walk(self, address: str, queue: str) -> Iterator[list[bytes]]:
        """The broker sends the next piece while this one is worked on."""
        connection = AmqpConnection(self._account)
        try:
            receiver = self._opened(connection, address, queue)
            window = FIRST
            while True:
                receiver.flow(max(0, window - receiver.credit))
                found = self._piece(connection, receiver, window // 2)
                if not found:
                    return
                receiver.flow(max(0, window - receiver.credit))
                connection.write()
                yield found
                fitting = MOST_BYTES * len(found) // max(1, sum(map(len, found)))
                window = max(2, min(MOST, fitting, 2 * window))
        finally:
            connection.close(timeout=1.0)

    def close(self) -> None:
        """Nothing is open between two walks."""

    def _opened(self, connection: AmqpConnection, address: str, queue: str) -> Receiver:
        connection.open()
        receiver = connection.receiver(f"{address}::{queue}")
        receiver.source.distribution_mode = Terminus.DIST_MODE_COPY
        # Else the broker keeps every message that it sent until the link ends: 160,000 of 1 KB took 500 MB of
        # its heap.
        receiver.snd_settle_mode = Link.SND_SETTLED
        connection.opened(receiver, self._timeout, core=True)
        return receiver

    def _piece(self, connection: AmqpConnection, receiver: Receiver, least: int) -> list[bytes]:
        """At least so many messages, for which there is credit; fewer at the end of the queue, none behind
        it.

        When nothing came for a moment the broker is asked to drain: it then sends what there is and gives the
        rest of the credit back. Not sooner, for in the middle of a large message a drain may cut off what
        follows, and seldom that message itself.
        """
        found: list[bytes] = []
        deadline = time.monotonic() + self._timeout
        while len(found) < least and (
            self._take(connection, receiver, found, GRACE) or receiver.current is not None
        ):
            self._check(deadline)
        if len(found) < least:
            receiver.drain(0)
            while receiver.credit > 0 or receiver.current is not None:
                self._take(connection, receiver, found, GRACE)
                self._check(deadline)
        return found

    def _check(self, deadline: float) -> None:
        if time.monotonic() >= deadline:
            raise BrokerTimeout(f"messages did not come within {self._timeout:g} s")

    def _take(
        self, connection: AmqpConnection, receiver: Receiver, found: list[bytes], timeout: float
    ) -> bool:
        """One step of the connection; whether a part of a message came."""
        came = False
        for kind, context in connection.step(timeout):
            if kind == DELIVERY and context.readable:
                came = True
                if not context.partial:
                    found.append(from_core(bytes(receiver.recv(context.pending) or b"")))
                    receiver.advance()
                    context.settle()
            elif kind in LINK_ENDS:
                raise refusal(receiver.remote_condition, "the broker closed the link")
        return came


def _message(encoded: bytes) -> Message | None:
    try:
        return decode(encoded)
    except MessageUndecodable:
        return None
