"""What the product asks of a message broker, and what it relies on. Adapters keep these promises; one suite
proves it.

Bytes called *encoded* are a whole AMQP 1.0 message (header to footer) as it came from or goes to the wire.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Any, Protocol

from contract.encryption import SYSTEM, TlsFiles
from contract.typed import Typed, canonical

NULL = Typed("null", None)


@dataclass(frozen=True, slots=True)
class Account:
    """Where the broker is and who asks. `password` never appears in a repr or a log.

    `url`: one address or several with commas, of which one is live (`broker.addresses`). Without a user it is
    the certificate in `tls` that says who asks. `in_clear`: whether the password may go to another machine
    without TLS.
    """

    url: str
    user: str
    password: str = field(repr=False)
    tls: TlsFiles = SYSTEM
    in_clear: bool = False


class BodyKind(Enum):
    """Which section of an AMQP message holds the body."""

    DATA = "data"
    VALUE = "value"
    SEQUENCE = "sequence"


@dataclass(frozen=True, slots=True)
class Message:
    """A message with every AMQP type kept. What the producer did not set is None or empty.

    `body`: binary for DATA (sections joined), list for SEQUENCE, any for VALUE. `properties` are the
    application properties, `annotations` the message annotations (broker's notes among them). `ttl_ms` 0 =
    does not expire.
    """

    body: Typed = NULL
    body_kind: BodyKind = BodyKind.VALUE
    properties: Mapping[str, Typed] = field(default_factory=dict)
    annotations: Mapping[str, Typed] = field(default_factory=dict)
    message_id: Typed | None = None
    correlation_id: Typed | None = None
    to: str = ""
    subject: str = ""
    reply_to: str = ""
    content_type: str = ""
    content_encoding: str = ""
    group_id: str = ""
    group_sequence: int = 0
    reply_to_group_id: str = ""
    user_id: bytes = b""
    created_at: datetime | None = None
    expires_at: datetime | None = None
    durable: bool = True
    priority: int = 4
    ttl_ms: int = 0
    delivery_count: int = 0

    @property
    def body_section(self) -> bytes:
        """The canonical form of the body for digests and the message key."""
        return self.body_kind.value.encode() + b":" + canonical(self.body)


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A message to send to `destination`: an address, or `address::queue` for one queue only."""

    destination: str
    message: Message


# -- consuming -----------------------------------------------------------------------------------------------


@dataclass(slots=True)  # frozen ones take three times as long to make
class Delivery:
    """One delivery: `tag` is unique within its consumer for ever, also across reconnects."""

    tag: int
    encoded: bytes


class Settle(Enum):
    """ACCEPT: handled, gone. FAIL: attempt + 1, back after the policy's delay or dead. REJECT: dead at
    once."""

    ACCEPT = "accept"
    FAIL = "fail"
    REJECT = "reject"


class ConsumerEvents(Protocol):
    """What a consumer tells its owner, always from the consumer's own thread: never block in here."""

    def opened(self) -> None:
        """The link is up (again). Deliveries of before are forgotten: the broker gives them again."""

    def lost(self, reason: str, permanent: bool) -> None:
        """The link or connection is gone, every outstanding delivery with it. The consumer reconnects by
        itself with growing pauses, unless `permanent` (wrong account, unknown queue): then it still tries,
        every 10 s."""

    def delivered(self, delivery: Delivery) -> None:
        """A message arrived. It costs one credit until it is settled."""

    def settled(self, tag: int, problem: str | None) -> None:
        """Answer to `settle_with_sends` only: None = broker confirmed the commit; else why nothing was
        committed and nothing sent; the delivery is then still outstanding and must be settled otherwise."""


class Consumer(Protocol):
    """One link to one queue. Every method may be called from any thread and returns at once."""

    def start(self) -> None:
        """Opens the link in a thread of its own."""

    def grant(self, credit: int) -> None:
        """Raises the number of outstanding deliveries to `credit` (a window, not an increment). A smaller one
        takes nothing back: as many as were granted before may still come."""

    def settle(self, settlements: Sequence[tuple[int, Settle]]) -> None:
        """Settles deliveries; tags of before a reconnect are ignored. Not confirmed: at-least-once."""

    def reconnect(self, reason: str) -> None:
        """Ends the link and opens another one, as after a loss: for an owner who knows that the broker has
        dropped it without a word. `events.lost` is told the reason."""

    def settle_with_sends(self, tag: int, sends: Sequence[Outgoing], *, may_share: bool = False) -> None:
        """One transaction: send all, accept the delivery, commit. `events.settled` says how it ended.

        `may_share`: its transaction may be that of others too. Where that fails, each gets one of its own,
        with an outcome of its own; then a delivery may have cost an attempt more than its own outcome
        says."""

    def stop(self, timeout: float = 10.0) -> None:
        """Flushes settlements, closes the link and gives unsettled deliveries back at once, no attempt
        spent."""


# -- publishing, browsing, managing --------------------------------------------------------------------------


class Publisher(Protocol):
    """Synchronous. A message is on disk at the broker when `publish` returns. Not safe between threads."""

    def publish(self, messages: Sequence[Outgoing]) -> None:
        """Sends all, durable unless the message says otherwise. Raises AddressUnknown: then nothing was sent;
        BrokerUnavailable: then an unknown part of them was sent (AMQP) or of each 1,000 all or none (STOMP, a
        transaction each); ValueError: a message that cannot be sent, and nothing was."""

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Browsed:
    """A message looked at without consuming it. `message` is None when the bytes cannot be decoded."""

    encoded: bytes
    message: Message | None


class Browser(Protocol):
    """Looks at a queue from its head. Order is the queue's."""

    def browse(self, address: str, queue: str, *, limit: int) -> Iterator[Browsed]:
        """At most `limit` messages, in steps; ends when nothing more came for a moment. Delayed messages are
        not seen. Close the iterator to stop early."""

    def walk(self, address: str, queue: str) -> Iterator[list[bytes]]:
        """All messages, encoded, in pieces of some hundred or some megabytes; none empty. What is sent
        meanwhile may be among them. Take a piece every few seconds, or the broker gives the walk up."""

    def close(self) -> None: ...


class Management(Protocol):
    """The broker's management operations that this product uses. Synchronous; safe between threads (one at a
    time)."""

    def call(self, resource: str, operation: str, *arguments: Any) -> Any:
        """Carries `operation` of `resource` (`broker`, `queue.NAME`, `address.NAME`) out and returns its
        value. Raises ManagementFailed with the broker's text, BrokerUnavailable, BrokerTimeout,
        AccessRefused."""

    def attribute(self, resource: str, name: str) -> Any:
        """The value of one attribute. Raises as `call` does; ManagementFailed when there is no such
        resource."""

    def attributes(self, resource: str, *names: str) -> list[Any]:
        """The values of these attributes, read one after the other for the time that one takes. Raises as
        `attribute` does when one of them is not there."""

    def close(self) -> None: ...


# -- what can go wrong with the broker, as decisions ---------------------------------------------------------
# No exception of a client library leaves its adapter.


class BrokerError(Exception):
    """Base: something about the broker."""


class BrokerUnavailable(BrokerError):
    """Temporary: not reachable, or the connection was lost. Try again with growing pauses; operator: is it
    running?"""


class BrokerTimeout(BrokerUnavailable):
    """Temporary: no answer in time. What was asked may have happened: look before asking again."""


class AccessRefused(BrokerError):
    """Permanent: wrong account or missing right. Operator: compare the account with
    docs/reference/broker-accounts.md."""


class AddressUnknown(BrokerError):
    """Permanent until provisioned: no such address or queue, and this account may not create it."""


class ManagementFailed(BrokerError):
    """The broker carried a management operation out and answered with an error, which is the text."""


class MessageUndecodable(BrokerError):
    """Poison: the bytes are no AMQP message. Refuse it once, keep the raw bytes, go on with the next one."""
