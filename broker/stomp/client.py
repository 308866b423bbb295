"""The STOMP side of the port, by stomp.py: publishing in transactions, and the broker's management
operations.

Nothing is consumed over STOMP but replies of the broker itself: a NACK there loses the message.
"""

import json
import logging
import queue
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any
from uuid import uuid4

import stomp
from stomp.exception import StompException

from broker.dialing import Address, dial, first_live, refuse_clear
from broker.port import (
    AccessRefused,
    Account,
    AddressUnknown,
    BrokerError,
    BrokerTimeout,
    BrokerUnavailable,
    ManagementFailed,
    Outgoing,
)
from broker.stomp.frames import frame_of

# It logs every lost connection with a traceback; our errors say the same where somebody reads them.
logging.getLogger("stomp.py").setLevel(logging.CRITICAL)

CONNECT = 5.0
# Milliseconds, both ways. Without it the broker drops an idle connection after a minute.
HEARTBEATS = (10_000, 10_000)
LARGEST_TRANSACTION = 1_000
MANAGEMENT_ADDRESS = "activemq.management"

Frame = tuple[str, Any]
# Headers and body of a management request.
Question = tuple[Mapping[str, str], str]


class _Listener(stomp.ConnectionListener):  # type: ignore[misc]  # stomp.py has no types
    """Puts frames on a queue at once: whatever took longer here would cost the connection its heartbeats."""

    def __init__(self) -> None:
        self.frames: queue.SimpleQueue[Frame] = queue.SimpleQueue()

    def on_connected(self, frame: Any) -> None:
        self.frames.put(("connected", frame))

    def on_message(self, frame: Any) -> None:
        self.frames.put(("message", frame))

    def on_receipt(self, frame: Any) -> None:
        self.frames.put(("receipt", frame))

    def on_error(self, frame: Any) -> None:
        self.frames.put(("error", frame))

    def on_disconnected(self) -> None:
        self.frames.put(("disconnected", None))


class _Session:
    """One connection; after any error it is thrown away. Not safe between threads."""

    def __init__(self, account: Account, address: Address, timeout: float) -> None:
        self._listener = _Listener()
        place = (address.host, address.port)
        self.connection = stomp.Connection12(
            [place],
            prefer_localhost=False,
            try_loopback_connect=False,
            reconnect_attempts_max=1,
            timeout=timeout,
            heartbeats=HEARTBEATS,
            # With it the broker takes text for bytes: a management request then fails and closes the
            # connection.
            auto_content_length=False,
        )
        self.connection.set_listener("frames", self._listener)
        refuse_clear(account, address)
        if address.secure:
            transport = self.connection.transport
            transport.disconnect_socket = lambda: _end_with_tls(transport)
            files = account.tls
            self.connection.set_ssl(
                [place],
                ca_certs=files.ca or None,
                cert_file=files.certificate or None,
                key_file=files.key or None,
            )
        try:
            self.connection.connect(account.user or None, account.password or None, wait=False)
            self.wait("connected", timeout)
        except (StompException, OSError) as error:
            self.close()
            # The library keeps the reason to itself: where it lasts, it is met once more.
            dial(account, address, timeout).close()
            raise BrokerUnavailable(f"no connection to {address}: {type(error).__name__}") from error
        except BrokerError:
            self.close()
            raise

    def wait(self, kind: str, timeout: float, name: str = "", value: str = "") -> Any:
        """The next frame of the kind with that header. Raises what an ERROR frame or a lost connection
        mean."""
        deadline = time.monotonic() + timeout
        while True:
            try:
                found, frame = self._listener.frames.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                raise BrokerTimeout(f"no answer over STOMP within {timeout:g} s") from None
            if found == kind and (not name or frame.headers.get(name) == value):
                return frame
            self._check(found, frame)

    def check(self) -> None:
        """Raises when an ERROR frame or the end of the connection has come meanwhile."""
        with suppress(queue.Empty):
            while True:
                self._check(*self._listener.frames.get_nowait())

    def _check(self, kind: str, frame: Any) -> None:
        if kind == "error":
            raise error_of(f"{frame.headers.get('message', '')} {frame.body or ''}".strip())
        if kind == "disconnected":
            raise BrokerUnavailable("the broker closed the STOMP connection")

    def begin(self, transaction: str) -> None:
        self._write(self.connection.begin, transaction)

    def commit(self, transaction: str, receipt: str) -> None:
        self._write(self.connection.commit, transaction, receipt=receipt)

    def send(self, destination: str, body: str | bytes, headers: Mapping[str, str]) -> None:
        self._write(self.connection.send, destination, body, headers=dict(headers))

    def subscribe(self, source: str, headers: Mapping[str, str]) -> None:
        self._write(self.connection.subscribe, source, id="1", ack="auto", headers=dict(headers))

    def _write(self, frame: Callable[..., None], *arguments: Any, **options: Any) -> None:
        try:
            frame(*arguments, **options)
        except (StompException, OSError) as error:
            # The broker answers a frame that it refuses and closes: its answer says more than our broken
            # pipe.
            with suppress(BrokerTimeout):
                self.wait("nothing", 1.0)
            raise BrokerUnavailable(f"STOMP connection lost: {type(error).__name__}") from error

    def close(self) -> None:
        with suppress(Exception):
            self.connection.transport.disconnect_socket()


def _end_with_tls(transport: Any) -> None:
    """Ends a session, in the place of the library's own way. That one waits for a goodbye of the broker, for
    ever, and closes the socket while the thread that reads may be within OpenSSL: whatever gets the
    descriptor next, a file or another connection, is then read by it. Here that thread meets the end, and
    closes."""
    transport.running = False
    if transport.socket is not None:
        with suppress(OSError):
            # Of the connection below, past the state of TLS.
            socket.socket.shutdown(transport.socket, socket.SHUT_RDWR)


def _session(account: Account) -> _Session:
    return first_live(
        account.url, "stomp", CONNECT, lambda address, seconds: _Session(account, address, seconds)
    )


def error_of(text: str) -> BrokerError:
    """The error class for the text of an ERROR frame."""
    if "does not exist" in text or "AMQ339001" in text or "permission='CREATE_" in text:
        return AddressUnknown(text)
    if "Security Error" in text or "AMQ229031" in text or "AMQ229032" in text or "AMQ339011" in text:
        return AccessRefused(text)
    return BrokerUnavailable(text or "the broker answered with an error")


class StompPublisher:
    """A `Publisher`: at most 1,000 messages a transaction, each wholly there or not at all.

    Bodies are text (a JMS TextMessage) or binary (a BytesMessage); properties arrive as text. What needs
    types goes over AMQP.
    """

    def __init__(self, account: Account, timeout: float = 30.0) -> None:
        self._account = account
        self._timeout = timeout
        self._session: _Session | None = None

    def publish(self, messages: Sequence[Outgoing]) -> None:
        frames = [(outgoing.destination, *frame_of(outgoing)) for outgoing in messages]
        remaining = iter(frames)
        while chunk := list(islice(remaining, LARGEST_TRANSACTION)):
            try:
                self._transaction(self._connected(), chunk)
            except BrokerError:
                self.close()
                raise

    def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            session.close()

    def _connected(self) -> _Session:
        if self._session is not None:
            try:
                self._session.check()
                return self._session
            except BrokerError:
                self.close()
        self._session = _session(self._account)
        return self._session

    def _transaction(
        self, session: _Session, frames: Sequence[tuple[str, str | bytes, dict[str, str]]]
    ) -> None:
        """All or none. The commit waits for the receipt of the last message: the broker carries a COMMIT out
        that follows a refused SEND in the same breath, and with it everything before the refused one."""
        transaction, receipt = str(uuid4()), str(uuid4())
        session.begin(transaction)
        for number, (destination, body, headers) in enumerate(frames, start=1):
            asked = {"receipt": receipt} if number == len(frames) else {}
            session.send(destination, body, headers | {"transaction": transaction} | asked)
        session.wait("receipt", self._timeout, "receipt-id", receipt)
        session.commit(transaction, receipt)
        session.wait("receipt", self._timeout, "receipt-id", receipt)


class StompManagement:
    """A `Management`. `reply_queue`: one fixed name per process (`MA.reply.<name>`), since such a queue stays
    behind.

    After a failure the next call connects anew. An operation that timed out may have been carried out.
    """

    def __init__(self, account: Account, reply_queue: str, timeout: float = 30.0) -> None:
        self._account = account
        self._reply_queue = reply_queue
        self._timeout = timeout
        self._lock = threading.Lock()
        self._session: _Session | None = None

    def call(self, resource: str, operation: str, *arguments: Any) -> Any:
        return self._ask(resource, [({"_AMQ_OperationName": operation}, json.dumps(arguments))])[0]

    def attribute(self, resource: str, name: str) -> Any:
        return self.attributes(resource, name)[0]

    def attributes(self, resource: str, *names: str) -> list[Any]:
        return self._ask(resource, [({"_AMQ_Attribute": name}, "") for name in names])

    def close(self) -> None:
        with self._lock:
            self._drop()

    def _drop(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            session.close()

    def _ask(self, resource: str, questions: Sequence[Question]) -> list[Any]:
        """All of them at once; the broker answers in their order."""
        with self._lock:
            try:
                session = self._connected()
                sent = [self._send(session, resource, *question) for question in questions]
                frames = [session.wait("message", self._timeout, "correlation-id", each) for each in sent]
            except BrokerError:
                self._drop()
                raise
        return [_value(frame) for frame in frames]

    def _send(self, session: _Session, resource: str, question: Mapping[str, str], body: str) -> str:
        """Its correlation id."""
        correlation = str(uuid4())
        headers = {
            "_AMQ_ResourceName": resource,
            "JMSReplyTo": self._reply_queue,
            "reply-to": self._reply_queue,
            "correlation-id": correlation,
            "destination-type": "ANYCAST",
            "content-type": "application/json",
        }
        session.send(MANAGEMENT_ADDRESS, body, headers | dict(question))
        return correlation

    def _connected(self) -> _Session:
        if self._session is not None:
            try:
                self._session.check()
                return self._session
            except BrokerError:
                self._drop()
        session = _session(self._account)
        self._session = session
        receipt = str(uuid4())
        session.subscribe(self._reply_queue, {"subscription-type": "MULTICAST", "receipt": receipt})
        try:
            session.wait("receipt", self._timeout, "receipt-id", receipt)
        except AddressUnknown as error:
            raise AccessRefused(f"this account may not manage the broker: {error}") from error
        return session


def _value(frame: Any) -> Any:
    try:
        value = json.loads(frame.body) if frame.body else None
    except ValueError as error:
        raise ManagementFailed(f"the broker's reply is not JSON: {frame.body[:200]}") from error
    if isinstance(value, list):
        value = value[0] if value else None
    if frame.headers.get("_AMQ_OperationSucceeded") != "true":
        raise ManagementFailed(str(value))
    return value
