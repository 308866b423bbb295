"""Consuming over AMQP: one link, one thread, encoded bytes handed over."""

import logging
import random
import threading
import time
from collections.abc import Callable, Sequence

from proton import Delivery as ProtonDelivery
from proton import Receiver

from broker.amqp.codec import encode_outgoing
from broker.amqp.connection import (
    DELIVERY,
    LINK_ENDS,
    LINK_OPENED,
    AmqpConnection,
    attached,
    refusal,
    settle_delivery,
)
from broker.amqp.credit import DRAIN_SECONDS, PART_SECONDS, Credit
from broker.amqp.transactions import ROLLBACK, Transactions
from broker.port import (
    AccessRefused,
    Account,
    AddressUnknown,
    BrokerError,
    BrokerTimeout,
    BrokerUnavailable,
    ConsumerEvents,
    Delivery,
    Outgoing,
    Settle,
)

log = logging.getLogger(__name__)

# Seconds between attempts to connect: grow by 2, with jitter, so that many consumers do not return at once.
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 10.0
STEP = 5.0

Command = Callable[["_Link"], None]


class AmqpConsumer:
    """A `Consumer`.

    A transaction that fails leaves the delivery outstanding, and the owner's FAIL counts one attempt. Where
    the commit itself failed (a duplicate id, the broker's disk), the broker has counted the attempt already:
    an abort counts what was accepted within it. `modified` would count it twice, settling without an outcome
    ends the connection ("AMQ119014: Transaction not found"); so FAIL is then sent as `released`, which brings
    the message back after the policy's delay, or to the dead letters after the last attempt, with exactly one
    attempt counted.
    """

    def __init__(
        self,
        account: Account,
        address: str,
        queue: str,
        events: ConsumerEvents,
        prefetch: int = 0,
        *,
        name: str = "ma",
        core: bool = False,
    ) -> None:
        """`name`: what the broker calls the connection, see `AmqpConnection`. `core`: Core messages come as
        they are, also those that the broker cannot turn into AMQP. It says of none then how often it
        delivered it."""
        self._account = account
        self._name = name
        self.source = f"{address}::{queue}"
        self._events = events
        self._core = core
        self.window = prefetch
        self._lock = threading.Lock()
        self._commands: list[Command] = []
        self._connection: AmqpConnection | None = None
        self._stopping = threading.Event()
        self._stop_until = float("inf")
        self._tag = 0
        self._thread = threading.Thread(target=self._run, name=f"consumer {queue}", daemon=True)

    # -- any thread ------------------------------------------------------------------------------------------

    def start(self) -> None:
        self._thread.start()

    def grant(self, credit: int) -> None:
        self.window = credit
        self._post(lambda link: link.top_up(force=True))

    def reconnect(self, reason: str) -> None:
        self._post(lambda link: link.end(reason))

    def settle(self, settlements: Sequence[tuple[int, Settle]]) -> None:
        self._post(lambda link: link.settle(settlements))

    def settle_with_sends(self, tag: int, sends: Sequence[Outgoing], *, may_share: bool = False) -> None:
        try:
            encoded = [(outgoing.destination, encode_outgoing(outgoing.message)) for outgoing in sends]
        except ValueError as error:
            problem = f"a message to send cannot be encoded: {error}"
            self._post(lambda link: link.refuse(tag, problem))
            return
        self._post(lambda link: link.transact(tag, encoded, may_share))

    def stop(self, timeout: float = 10.0) -> None:
        self._stop_until = time.monotonic() + timeout
        self._stopping.set()
        self._wake()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(timeout + 1.0)

    def _post(self, command: Command) -> None:
        with self._lock:
            self._commands.append(command)
            first = len(self._commands) == 1
        if first:
            self._wake()

    def _wake(self) -> None:
        with self._lock:
            if self._connection is not None:
                self._connection.wake()

    # -- the consumer's own thread ---------------------------------------------------------------------------

    def _run(self) -> None:
        pause = FIRST_PAUSE
        while not self._stopping.is_set():
            link = _Link(self, self._events)
            try:
                self._live(link)
            except BrokerError as error:
                if link.was_open:
                    pause = FIRST_PAUSE
                self._tell_lost(error)
                permanent = isinstance(error, (AccessRefused, AddressUnknown))
                pause = LONGEST_PAUSE if permanent else min(pause * 2, LONGEST_PAUSE)
            except Exception:
                log.exception("consumer of %s failed; reconnecting", self.source)
                self._tell_lost(BrokerError("the consumer failed: see the log"))
                pause = LONGEST_PAUSE
            self._stopping.wait(pause * random.uniform(0.5, 1.0))

    def _tell_lost(self, error: BrokerError) -> None:
        if not self._stopping.is_set():
            _told(self._events.lost, str(error), isinstance(error, (AccessRefused, AddressUnknown)))

    def _live(self, link: "_Link") -> None:
        """From connecting until the connection is lost (raises) or the consumer is stopped (returns)."""
        connection = AmqpConnection(self._account, self._name)
        try:
            connection.open()
            with self._lock:
                self._connection = connection
                self._commands.clear()  # they speak of deliveries that are gone
            link.open(connection, self.source, core=self._core)
            while not self._stopping.is_set():
                self._step(link, connection, link.patience)
                if link.unanswered:
                    connection.close(timeout=STEP)
                    raise BrokerTimeout(f"the broker did not answer a drain within {DRAIN_SECONDS:g} s")
            self._finish(link, connection)
        finally:
            with self._lock:
                self._connection = None
            connection.close()

    def _step(self, link: "_Link", connection: AmqpConnection, timeout: float) -> None:
        with self._lock:
            commands, self._commands = self._commands, []
        for command in commands:
            command(link)
        # Before the wait: with one delivery at a time the broker says nothing until it may send another.
        link.top_up()
        for kind, context in connection.step(timeout):
            link.take(kind, context)
        link.go_on_after_rollbacks()
        link.look_for_lost_credit()
        link.top_up()

    def _finish(self, link: "_Link", connection: AmqpConnection) -> None:
        """What was posted before `stop` still happens; then the broker gets back what is unsettled."""
        self.window = 0
        while time.monotonic() < self._stop_until:
            with self._lock:
                flushed = not self._commands
            if flushed and link.transactions_idle:
                break
            self._step(link, connection, min(0.2, self._stop_until - time.monotonic()))
        link.close()
        connection.close(timeout=max(0.1, self._stop_until - time.monotonic()))

    def next_tag(self) -> int:
        self._tag += 1
        return self._tag


class _Link:
    """One life of the link: what is outstanding on this connection."""

    was_open = False

    def __init__(self, consumer: AmqpConsumer, events: ConsumerEvents) -> None:
        self._consumer = consumer
        self._events = events
        self._unsettled: dict[int, ProtonDelivery] = {}
        self._counted: set[int] = set()
        self._rolling_back: list[tuple[float, ProtonDelivery, Settle]] = []
        self._credit = Credit()
        self._part_since = 0.0

    def open(self, connection: AmqpConnection, source: str, *, core: bool) -> None:
        self._receiver: Receiver = connection.receiver(source)
        self._transactions = Transactions(
            connection, self._unsettled.get, self._counted.add, self._transaction_ended
        )
        self._core = core
        if core:
            connection.open_for_core(self._receiver)
        else:
            self._receiver.open()

    def close(self) -> None:
        self._receiver.close()

    def end(self, reason: str) -> None:
        raise BrokerUnavailable(reason)

    @property
    def transactions_idle(self) -> bool:
        return self._transactions.idle

    def take(self, kind: int, context: object) -> None:
        if kind == DELIVERY:
            assert isinstance(context, ProtonDelivery)
            if context.readable:
                self._take_message(context)
            elif context.updated:
                self._transactions.delivery_updated(context)
        elif kind in LINK_ENDS and context == self._receiver:
            raise refusal(self._receiver.remote_condition, "the broker closed the link")
        elif kind in LINK_ENDS:
            self._transactions.link_ended(context)
        elif kind == LINK_OPENED and context == self._receiver:
            if attached(self._receiver):
                self.was_open = True
                self._credit.delivered(time.monotonic(), 0)
                _told(self._events.opened)
                self.top_up(force=True)
        else:
            self._transactions.advance()

    def _take_message(self, delivery: ProtonDelivery) -> None:
        now = time.monotonic()
        self._part_since = now
        if delivery.partial:
            return  # a large one comes in parts; the engine keeps them until the last
        encoded = self._receiver.recv(delivery.pending)
        self._receiver.advance()
        self._credit.delivered(now, self._receiver.credit)
        if delivery.aborted or encoded is None:
            delivery.settle()
            return
        tag = self._consumer.next_tag()
        self._unsettled[tag] = delivery
        _told(self._events.delivered, Delivery(tag, bytes(encoded)))

    def top_up(self, force: bool = False) -> None:
        """Keeps outstanding deliveries and credit at the window; in steps of a quarter, to save frames. A
        smaller one is reached by settling: a drain in the middle of a large message cuts it off until there
        is credit again."""
        if not self.was_open or self._credit.probing:
            return
        window = self._consumer.window
        credit = self._receiver.credit
        missing = self._credit.missing(window, len(self._unsettled), credit)
        if missing > 0 and (force or credit <= self._credit.spent or missing * 4 >= window):
            self._receiver.flow(missing)

    def look_for_lost_credit(self) -> None:
        """A link that has credit and is quiet is probed, but never in the middle of a message. The probe
        itself brings one to begin: it may be cut off by the answer, and goes on with one credit more."""
        now = time.monotonic()
        if not self.was_open:
            return
        if self._receiver.current is not None:
            if self._credit.probing and self._receiver.drained() > 0:
                self._warn_of_lost_credit(self._credit.cut_off(now))
                self._receiver.flow(1)
            elif now - self._part_since > PART_SECONDS:
                raise BrokerTimeout(f"the rest of a message did not come within {PART_SECONDS:g} s")
        elif self._credit.answered(self._receiver.credit):
            self._warn_of_lost_credit(self._credit.probed(now, self._receiver.credit))
        elif not self._credit.probing and self._may_probe and self._credit.due(now) <= 0.0:
            self._receiver.drained()  # what an earlier probe gave back
            self._receiver.drain(self._credit.probe(now, self._receiver.credit))

    def _warn_of_lost_credit(self, more: bool) -> None:
        if more:
            log.warning(
                "the broker could not deliver %d messages of %s", self._credit.lost, self._consumer.source
            )

    @property
    def unanswered(self) -> bool:
        """Whether an answer to a drain is overdue and nothing is in hand, which would come back, and twice
        handled."""
        in_hand = self._unsettled or self._rolling_back or self._receiver.current is not None
        return self._credit.is_overdue(time.monotonic()) and not in_hand and self._transactions.idle

    @property
    def _may_probe(self) -> bool:
        """Something could come by our count."""
        return self._consumer.window > len(self._unsettled) and self._receiver.credit > 0

    def settle(self, settlements: Sequence[tuple[int, Settle]]) -> None:
        for tag, settle in settlements:
            delivery = self._unsettled.pop(tag, None)
            if delivery is None:
                continue
            if tag in self._counted:
                self._counted.discard(tag)
                self._rolling_back.append((time.monotonic() + ROLLBACK, delivery, settle))
            else:
                settle_delivery(delivery, settle, ProtonDelivery.MODIFIED)

    def go_on_after_rollbacks(self) -> None:
        while self._rolling_back and self._rolling_back[0][0] <= time.monotonic():
            _, delivery, settle = self._rolling_back.pop(0)
            settle_delivery(delivery, settle, ProtonDelivery.RELEASED)
        if self._transactions.pausing:
            self._transactions.advance()

    @property
    def patience(self) -> float:
        """Seconds that a step may wait."""
        patience = min(STEP, ROLLBACK) if self._rolling_back or self._transactions.pausing else STEP
        if self.was_open and (self._credit.probing or self._may_probe):
            patience = min(patience, self._credit.due(time.monotonic()))
        return patience

    def transact(self, tag: int, sends: Sequence[tuple[str, bytes]], may_share: bool) -> None:
        if tag in self._unsettled:
            self._transactions.add(tag, sends, may_share=may_share)

    def refuse(self, tag: int, problem: str) -> None:
        if tag in self._unsettled:
            _told(self._events.settled, tag, problem)

    def _transaction_ended(self, tag: int, problem: BrokerError | None) -> None:
        if problem is None:
            self._counted.discard(tag)
            delivery = self._unsettled.pop(tag, None)
            if delivery is not None:
                delivery.settle()
        _told(self._events.settled, tag, None if problem is None else str(problem))


def _told(callback: Callable[..., None], *arguments: object) -> None:
    """The owner's mistake must not end the link."""
    try:
        callback(*arguments)
    except Exception:
        log.exception("the consumer's owner failed in %s", getattr(callback, "__name__", callback))
