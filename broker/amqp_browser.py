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
            left = limit
            while left > 0:
                wanted = min(left, STEP)
                found = self._step(connection, receiver, wanted)
                for encoded in found:
                    yield Browsed(encoded, _message(encoded))
                left -= len(found)
                if len(found) < wanted:
                    return
        finally:
            connection.close(timeout=1.0)

    def close(self) -> None:
        """Nothing is open between two walks."""

    def _step(self, connection: AmqpConnection, receiver: Receiver, wanted: int) -> list[bytes]:
        """The next messages; fewer than `wanted` = the end: asked to drain, the broker gives back unused credit."""
        receiver.drain(wanted)
        found: list[bytes] = []
        deadline = time.monotonic() + self._timeout
        while receiver.credit > 0:
            for kind, context in connection.step(max(0.0, deadline - time.monotonic())):
                if kind == DELIVERY and context.readable and not context.partial:
                    encoded = receiver.recv(context.pending)
                    receiver.advance()
                    context.settle()
                    found.append(bytes(encoded or b""))
                    deadline = time.monotonic() + self._timeout
                elif kind in LINK_ENDS:
                    raise refusal(receiver.remote_condition, "the broker closed the link")
            if time.monotonic() >= deadline:
                raise BrokerTimeout("no answer while browsing")
        return found


def _message(encoded: bytes) -> Message | None:
    try:
        return decode(encoded)
    except MessageUndecodable:
        return None
