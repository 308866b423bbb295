"""One AMQP connection that its owner steps by hand: a socket, Proton's protocol engine and nothing in
between.

Proton's own `Container` is left out on purpose: it creates a dozen objects per event, hides a lost connection
from a handler that was busy, and cannot say when its last bytes are on the wire. Everything here belongs to
one thread; only `wake` may be called from another.
"""

import os
import select
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any
from uuid import uuid4

from cproton import (
    PN_CONNECTION_REMOTE_CLOSE,
    PN_DELIVERY,
    PN_LINK_FLOW,
    PN_LINK_REMOTE_CLOSE,
    PN_LINK_REMOTE_DETACH,
    PN_LINK_REMOTE_OPEN,
    PN_SESSION_REMOTE_CLOSE,
    PN_TRANSPORT_CLOSED,
    PN_TRANSPORT_ERROR,
    PN_TRANSPORT_TAIL_CLOSED,
    isnull,
    pn_cast_pn_delivery,
    pn_cast_pn_link,
    pn_collector_peek,
    pn_collector_pop,
    pn_disposition_data,
    pn_event_context,
    pn_event_type,
)
from proton import (
    Collector,
    Connection,
    Data,
    Delivery,
    Endpoint,
    Link,
    ProtonException,
    Receiver,
    Sender,
    Transport,
)

from broker.amqp.core_tunnel import offering
from broker.dialing import Address, dial, first_live
from broker.port import (
    AccessRefused,
    Account,
    AddressUnknown,
    BrokerError,
    BrokerTimeout,
    BrokerUnavailable,
    Settle,
)
from contract.encryption import is_local, tls_problem

# Seconds. The broker must be heard within IDLE; it asks us for a sign of life by its own `amqpIdleTimeout`.
CONNECT, IDLE = 5.0, 20.0
READ = 1 << 18

DELIVERY, LINK_OPENED, LINK_FLOW = PN_DELIVERY, PN_LINK_REMOTE_OPEN, PN_LINK_FLOW
LINK_ENDS = frozenset({PN_LINK_REMOTE_CLOSE, PN_LINK_REMOTE_DETACH})
_LINKS = LINK_ENDS | {LINK_OPENED, LINK_FLOW}
_ENDS = frozenset(
    {
        PN_CONNECTION_REMOTE_CLOSE,
        PN_SESSION_REMOTE_CLOSE,
        PN_TRANSPORT_ERROR,
        PN_TRANSPORT_TAIL_CLOSED,
        PN_TRANSPORT_CLOSED,
    }
)
# What happened: DELIVERY with the delivery, one of the link events with the link.
Happened = tuple[int, Any]
# A socket that does not wait, plain or with TLS, could not go on.
NOT_NOW = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)
_as_delivery: Any = Delivery  # untyped in the library
_as_link: Any = Link.wrap


class AmqpConnection:
    """Raises BrokerUnavailable from every step once the connection is gone, AccessRefused for a wrong
    account."""

    def __init__(self, account: Account, name: str = "ma") -> None:
        """The broker knows the connection by `name` with a number behind it."""
        self._account = account
        self._name = name
        self._socket: socket.socket | None = None
        self._collector: Collector | None = None
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_read, False)
        os.set_blocking(self._wake_write, False)
        self.session: Any = None

    # -- opening and closing ---------------------------------------------------------------------------------

    def open(self, timeout: float = CONNECT) -> None:
        """Returns when the broker has opened its side too; of several addresses the first that does."""
        first_live(self._account.url, "amqp", timeout, self._open)

    def _open(self, address: Address, timeout: float) -> None:
        deadline = time.monotonic() + timeout
        self._end_socket()
        self._socket = dial(self._account, address, timeout)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.setblocking(False)
        self._secure = address.secure
        self._poll = select.poll()
        self._poll.register(self._wake_read, select.POLLIN)
        self._watching = 0
        self._bind(address)
        while not self._connection.state & Endpoint.REMOTE_ACTIVE:
            for _ in self.step(max(0.0, deadline - time.monotonic())):
                pass
            if time.monotonic() >= deadline:
                raise BrokerTimeout(f"{address} accepted the connection but does not answer")

    def _bind(self, address: Address) -> None:
        self._collector = Collector()
        self._connection = Connection()
        self._transport = Transport()
        self._connection.collect(self._collector)
        self._connection.container = f"{self._name}-{uuid4()}"
        self._connection.hostname = address.host
        sasl = self._transport.sasl()
        if self._account.user:
            self._connection.user = self._account.user
            self._connection.password = self._account.password
            sasl.allowed_mechs("PLAIN")
        else:
            sasl.allowed_mechs("EXTERNAL")
        # Proton does not know that the socket encrypts.
        sasl.allow_insecure_mechs = address.secure or is_local(address.host) or self._account.in_clear
        self._transport.idle_timeout = IDLE
        self._transport.bind(self._connection)
        self._connection.open()
        self.session = self._connection.session()
        self.session.open()

    def close(self, timeout: float = 0.0) -> None:
        """Closes; with a timeout waits until the broker has taken what was sent before."""
        deadline = time.monotonic() + timeout
        try:
            if self._socket is not None and timeout:
                self._connection.close()
                while not self._connection.state & Endpoint.REMOTE_CLOSED and time.monotonic() < deadline:
                    for _ in self.step(max(0.0, deadline - time.monotonic())):
                        pass
        except BrokerError:
            pass
        finally:
            self._free()

    def _end_socket(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        if self._collector is not None:
            self._collector.release()
            self._collector = None

    def _free(self) -> None:
        self._end_socket()
        for descriptor in (self._wake_read, self._wake_write):
            if descriptor >= 0:
                os.close(descriptor)
        self._wake_read = self._wake_write = -1

    # -- stepping --------------------------------------------------------------------------------------------

    def wake(self) -> None:
        """Ends the wait of the step at hand or of the next one. From any thread, not after `close`."""
        with suppress(BlockingIOError):  # many wakes are waiting already
            os.write(self._wake_write, b"!")

    def step(self, timeout: float) -> Iterator[Happened]:
        """Sends what there is to send, waits at most `timeout` seconds for something and yields what
        happened."""
        self._write()
        self._wait(timeout)
        self._read()
        yield from self.happened()
        self._write()

    def happened(self) -> Iterator[Happened]:
        """The events so far, without touching the network.

        Proton's `Event` is left out: it wraps connection, session, link and transport anew for each delivery,
        which costs more than everything else that is done with one.
        """
        assert self._collector is not None
        collector = self._collector._impl
        while not isnull(event := pn_collector_peek(collector)):
            kind = pn_event_type(event)
            if kind == DELIVERY:
                yield kind, _as_delivery(pn_cast_pn_delivery(pn_event_context(event)))
            elif kind in _LINKS:
                yield kind, _as_link(pn_cast_pn_link(pn_event_context(event)))
            elif kind in _ENDS:
                raise self._reason(kind)
            pn_collector_pop(collector)

    def write(self) -> None:
        """Sends what there is to send, as far as it goes without waiting."""
        self._write()

    def _wait(self, timeout: float) -> None:
        assert self._socket is not None
        now = time.monotonic()
        tick = self._transport.tick(now)
        if tick:
            timeout = min(timeout, max(0.0, tick - now))
        if self._secure and self._socket.pending():  # type: ignore[attr-defined]  # read and decrypted already
            timeout = 0.0
        wanted = select.POLLIN | (select.POLLOUT if self._pending() > 0 else 0)
        if wanted != self._watching:
            self._poll.register(self._socket, wanted)
            self._watching = wanted
        for descriptor, _ in self._poll.poll(timeout * 1000):
            if descriptor == self._wake_read:
                os.read(self._wake_read, 4096)

    def _pending(self) -> int:
        try:
            return int(self._transport.pending())
        except ProtonException:
            return 0

    def _write(self) -> None:
        assert self._socket is not None
        while (pending := self._pending()) > 0:
            try:
                sent = self._socket.send(self._transport.peek(min(pending, READ)) or b"")
            except NOT_NOW:
                return
            except OSError as error:
                raise self._lost(error) from error
            self._transport.pop(sent)

    def _read(self) -> None:
        assert self._socket is not None
        while (capacity := self._capacity()) > 0:
            try:
                data = self._socket.recv(min(capacity, READ))
            except NOT_NOW:
                return
            except OSError as error:
                raise self._lost(error) from error
            if not data:
                for _ in self.happened():  # the broker's own reason, if it gave one, says more
                    pass
                raise BrokerUnavailable("the broker closed the connection")
            self._transport.push(data)
            if len(data) < capacity and not self._secure:  # TLS gives one record at a time
                return

    def _lost(self, error: OSError) -> BrokerUnavailable:
        if isinstance(error, ssl.SSLError):
            return BrokerUnavailable(tls_problem(error, "the broker"))
        return BrokerUnavailable(f"connection lost: {error}")

    def _capacity(self) -> int:
        try:
            return int(self._transport.capacity())
        except ProtonException:
            return 0

    def _reason(self, kind: int) -> BrokerError:
        condition = self._connection.remote_condition or self._transport.condition
        if kind == PN_SESSION_REMOTE_CLOSE:
            condition = self.session.remote_condition or condition
        return refusal(condition, "the broker ended the connection")

    # -- links -----------------------------------------------------------------------------------------------

    def receiver(self, source: str) -> Receiver:
        """A receiver without credit, not yet opened."""
        link: Receiver = self.session.receiver(f"{source}-{uuid4()}")
        link.source.address = source
        return link

    def sender(self, target: str) -> Sender:
        """A sender, not yet opened. `target` empty = set by the caller (the transaction coordinator)."""
        link: Sender = self.session.sender(f"{target}-{uuid4()}")
        if target:
            link.target.address = target
        return link

    def open_for_core(self, link: Receiver, timeout: float = CONNECT) -> None:
        """Opens the link and asks for Core messages as they are; `broker.amqp.core_message` reads them."""
        deadline = time.monotonic() + timeout
        self._flush(deadline)
        link.open()
        frames = self._transport.peek(self._pending()) or b""
        self._send_whole(offering(frames), deadline)
        self._transport.pop(len(frames))

    def _flush(self, deadline: float) -> None:
        """So that what is pending begins with a frame."""
        while (pending := self._pending()) > 0:
            frames = self._transport.peek(pending) or b""
            self._send_whole(frames, deadline)
            self._transport.pop(len(frames))

    def _send_whole(self, data: bytes, deadline: float) -> None:
        assert self._socket is not None
        view = memoryview(data)
        while view:
            try:
                view = view[self._socket.send(view) :]
            except NOT_NOW:
                left = deadline - time.monotonic()
                if left <= 0.0:
                    raise BrokerTimeout("the broker accepts no data") from None
                select.select([], [self._socket], [], left)
            except OSError as error:
                raise self._lost(error) from error

    def opened(self, link: Receiver | Sender, timeout: float, *, core: bool = False) -> None:
        """Opens the link and returns when the broker has it open; raises its reason when it refuses. `core`:
        see `open_for_core`."""
        if core and isinstance(link, Receiver):
            self.open_for_core(link)
        else:
            link.open()
        deadline = time.monotonic() + timeout
        while not attached(link):
            for kind, context in self.step(max(0.0, deadline - time.monotonic())):
                if kind in LINK_ENDS and context == link:
                    raise refusal(link.remote_condition, "the broker refused the link")
            if time.monotonic() >= deadline:
                raise BrokerTimeout("the broker does not open the link")


def attached(link: Receiver | Sender) -> bool:
    """Whether the broker has the link. One that it refuses it opens too, without a terminus, and closes at
    once."""
    if not link.state & Endpoint.REMOTE_ACTIVE:
        return False
    if link.is_receiver:
        return link.remote_source.address is not None
    target = link.remote_target
    return target.address is not None or target.type == link.target.COORDINATOR


def forget_state(delivery: Delivery) -> None:
    """Before it gets another state with data: Proton adds that to the last one's, and the broker closes the
    connection over it."""
    Data(pn_disposition_data(delivery.local._impl)).clear()


def settle_delivery(delivery: Delivery, settle: Settle, failed: int) -> None:
    """`failed`: Proton's outcome for FAIL, `MODIFIED` or `RELEASED`."""
    if settle is Settle.ACCEPT:
        delivery.update(Delivery.ACCEPTED)
    elif settle is Settle.REJECT:
        delivery.update(Delivery.REJECTED)
    else:
        delivery.local.failed = failed == Delivery.MODIFIED
        delivery.update(failed)
    delivery.settle()


def refusal(condition: Any, otherwise: str) -> BrokerError:
    """The error class for an AMQP error condition."""
    if condition is None:
        return BrokerUnavailable(otherwise)
    text = f"{condition.description or otherwise} ({condition.name})"
    if condition.name == "amqp:not-found" or "permission='CREATE_" in text or "AMQ229017" in text:
        return AddressUnknown(text)
    if condition.name == "amqp:unauthorized-access" or "AMQ229032" in text or "AMQ229031" in text:
        return AccessRefused(text)
    return BrokerUnavailable(text)
