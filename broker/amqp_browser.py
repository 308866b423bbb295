"""Looking at a queue over AMQP without consuming it."""

import time
from collections.abc import Iterator

from proton import Receiver, Terminus

from broker.amqp_codec import decode
from broker.amqp_connection import DELIVERY, LINK_ENDS, AmqpConnection, refusal
from broker.errors import BrokerTimeout, MessageUndecodable
from broker.port import Account, Browsed, Message

# Messages asked for at a time: bounds what is held in memory here, and how often the broker is asked.
STEP = 200
# Seconds that a walk waits at the end of the queue for a message that is only just on its way.
GRACE = 0.05
# Seconds without a message after which the queue may be at its end.
QUIET = 0.1


class AmqpBrowser:
    """A `Browser`. Each walk has a connection of its own; take the messages briskly, within seconds each."""

    def __init__(self, account: Account, timeout: float = 10.0) -> None:
        self._account = account
        self._timeout = timeout

    def browse(self, address: str, queue: str, *, limit: int) -> Iterator[Browsed]:
        connection = AmqpConnection(self._account)
        try:
            connection.open()
            receiver = connection.receiver(f"{address}::{queue}")
            receiver.source.distribution_mode = Terminus.DIST_MODE_COPY
            connection.opened(receiver, self._timeout)
            left, quiet = limit, 0
            while left > 0 and quiet < 2:
                found = self._step(connection, receiver, min(left, STEP), GRACE if quiet else 0.0)
                for encoded in found:
                    yield Browsed(encoded, _message(encoded))
                left -= len(found)
                quiet = 0 if found else quiet + 1
        finally:
            connection.close(timeout=1.0)

    def close(self) -> None:
        """Nothing is open between two walks."""

    def _step(self, connection: AmqpConnection, receiver: Receiver, wanted: int, grace: float) -> list[bytes]:
        """The next messages, as many as there are now: asked to drain, the broker gives back unused credit.

        It also does so behind each large message, though others follow. So fewer than wanted is not the end, and one
        empty step is not either: the second one first waits `grace` seconds for a message before it drains.
        """
        found: list[bytes] = []
        if grace:
            receiver.flow(wanted)
            self._take(connection, receiver, found, time.monotonic() + grace)
        receiver.drain(0 if grace else wanted)
        deadline = time.monotonic() + self._timeout
        while receiver.credit > 0 or receiver.current is not None:
            if self._take(connection, receiver, found, deadline):
                deadline = time.monotonic() + self._timeout
            elif time.monotonic() >= deadline:
                raise BrokerTimeout("no answer while browsing")
        return found

    def _take(self, connection: AmqpConnection, receiver: Receiver, found: list[bytes], deadline: float) -> bool:
        """One step of the connection; whether a part of a message came."""
        came = False
        for kind, context in connection.step(max(0.0, deadline - time.monotonic())):
            if kind == DELIVERY and context.readable:
                came = True
                if not context.partial:
                    found.append(bytes(receiver.recv(context.pending) or b""))
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
