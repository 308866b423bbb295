"""The feed: every new dead letter comes through one queue and becomes a row. Accepted after the commit."""

import queue
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime

import structlog
from django.db import InterfaceError, OperationalError
from django.utils import timezone

from broker.amqp.codec import decode
from broker.amqp.core_message import from_core
from broker.port import (
    BrokerError,
    Consumer,
    Delivery,
    Management,
    Message,
    MessageUndecodable,
    Outgoing,
    Publisher,
    Settle,
)
from console.jobs import crash
from console.processes import record_heartbeat
from contract.names import dead_letter_queue
from dlq.dead_letters.rules.parser import origin_of, read_letter
from dlq.index import queries, store, undelivered
from dlq.index.queries import FEED_QUEUE, UNKNOWN_QUEUE
from dlq.index.rescue import QueueNames, copy_of, has_bad_text
from dlq.index.store import uncollected
from dlq.models import DeadLetter
from exposition.declared import Tallies, counter

log = structlog.get_logger(__name__)

# What the process counts of itself, for Prometheus: it begins at 0 when it starts.
OF_FEED = (
    counter("ma_feed_letters_total", "Dead letters that the feed added to the index, since it started."),
    counter("ma_feed_steps_total", "Steps of the feed, since it started.", "result"),
)
tallies = Tallies(OF_FEED)

# Dead letters and bytes of one transaction: large ones cost less each, until they take memory and lock others
# out.
BATCH, BATCH_BYTES = 1000, 16 * 1024 * 1024
# Deliveries outstanding at a time: bounds memory, and what is delivered again after a crash. Few as long as
# nobody knows how large they are; then as many as take WINDOW_BYTES by the average of the last batch.
FIRST_WINDOW, WINDOW, WINDOW_BYTES = 100, 2000, 32 * 1024 * 1024
# Dead letters in the feed above which it is only drained: see `Feed._lies_where_a_walk_finds_it`.
MOST_UNREAD = 200_000
# Seconds between two signs of life, and before a step that failed is tried again.
HEARTBEAT_EVERY = 5.0
PAUSE = 2.0


class Inbox:
    """The consumer's events, taken at once. Deliveries of a lost link stay: handling one twice changes
    nothing."""

    def __init__(self) -> None:
        self.deliveries: queue.SimpleQueue[Delivery] = queue.SimpleQueue()
        self.openings = 0
        self.is_open = False

    def opened(self) -> None:
        self.openings += 1
        self.is_open = True
        log.info("feed is open")

    def lost(self, reason: str, permanent: bool) -> None:
        self.is_open = False
        log.warning("feed waits for the broker", reason=reason, permanent=permanent)

    def delivered(self, delivery: Delivery) -> None:
        self.deliveries.put(delivery)

    def settled(self, tag: int, problem: str | None) -> None:
        """Nothing is settled in transactions here."""


class Feed:
    """Turns deliveries into rows. `step` is one batch; a batch that failed is tried again by the next step.

    `require_own(now, at_once=…)` raises where the broker is not ours any more; then nothing of a batch is
    stored, and what was delivered goes back with the link."""

    def __init__(
        self,
        consumer: Consumer,
        inbox: Inbox,
        management: Management,
        publisher: Publisher,
        dla: str,
        *,
        require_own: Callable[..., None] | None = None,
    ) -> None:
        self._require_own = require_own
        self._consumer = consumer
        self._inbox = inbox
        self._management = management
        self._publisher = publisher
        self._dla = dla
        self._names = QueueNames(management)
        self._node_id = ""
        self._node_of_opening = 0
        self._pending: list[Delivery] = []
        self._next_heartbeat = 0.0
        self._window = FIRST_WINDOW
        self._draining = False
        self._forgot_at_opening = 0
        self._deaths: list[undelivered.FurtherDeath] = []
        self._stopped_at = -1

    def start(self) -> None:
        self._consumer.start()
        self._consumer.grant(self._window)

    def stop(self) -> None:
        """Stops. What was not accepted comes again."""
        self._consumer.stop()
        self._publisher.close()

    def step(self, timeout: float = 1.0) -> bool:
        """Returns whether dead letters were stored. Never raises for the broker or the database: it says so
        and waits a moment. Raises what `require_own` raises."""
        self._pending = self._pending or self._take(timeout)
        try:
            self._give_heartbeat()
            if self._require_own is not None:
                self._require_own(timezone.now(), at_once=bool(self._pending))
            if not self._pending:
                tallies.count("ma_feed_steps_total", "idle")
                return False
            self._store(self._pending, timezone.now())
        except (BrokerError, OperationalError, InterfaceError) as error:
            log.warning("feed waits", reason=str(error), letters=len(self._pending))
            tallies.count("ma_feed_steps_total", "failed")
            time.sleep(PAUSE)
            return False
        crash.point("feed: stored, not accepted")
        self._consumer.settle([(delivery.tag, Settle.ACCEPT) for delivery in self._pending])
        tallies.count("ma_feed_steps_total", "stored")
        tallies.count("ma_feed_letters_total", by=len(self._pending))
        self._adapt_window()
        self._pending = []
        return True

    def _take(self, timeout: float) -> list[Delivery]:
        found: list[Delivery] = []
        with suppress(queue.Empty):
            found.append(
                self._inbox.deliveries.get(timeout=timeout)
                if timeout
                else self._inbox.deliveries.get_nowait()
            )
            taken = len(found[0].encoded)
            while len(found) < BATCH and taken < BATCH_BYTES:
                found.append(self._inbox.deliveries.get_nowait())
                taken += len(found[-1].encoded)
        return found

    def _adapt_window(self) -> None:
        average = sum(len(delivery.encoded) for delivery in self._pending) // len(self._pending)
        fitting = WINDOW_BYTES // max(1, average)
        window = max(FIRST_WINDOW // 10, min(WINDOW, fitting, 2 * self._window))
        if window != self._window:
            self._window = window
            self._consumer.grant(window)

    def _give_heartbeat(self) -> None:
        if time.monotonic() >= self._next_heartbeat:
            now = timezone.now()
            record_heartbeat("feed", now)
            self._next_heartbeat = time.monotonic() + HEARTBEAT_EVERY
            self._check_backlog(now)
            self._check_undelivered(now)

    def _check_undelivered(self, now: datetime) -> None:
        try:
            if self._forgot_at_opening != self._inbox.openings:
                opening = self._inbox.openings
                undelivered.forget_before_restart(self._management, now)
                self._forgot_at_opening = opening
            undelivered.note_taken_out(undelivered.take_out(self._management), now)
        except BrokerError as error:
            log.info("undeliverable messages not removed yet", reason=str(error))

    def _check_backlog(self, now: datetime) -> None:
        """Too many: that all queues are to be walked is written down before the first dead letter is passed
        over."""
        opening = self._inbox.openings
        try:
            figures = self._management.attributes(f"queue.{FEED_QUEUE}", "MessageCount", "ConsumerCount")
            backlog, consumers = map(int, figures)
            if backlog and not consumers and self._inbox.is_open and opening == self._inbox.openings:
                self._begin_again(now)
        except BrokerError as error:
            log.info("feed backlog unknown", reason=str(error))
            return
        queries.feed_counted(backlog, now)
        if backlog > MOST_UNREAD and not self._draining:
            queries.all_to_be_walked()
            log.warning("feed backlog too large: queues will be scanned instead", letters=backlog)
        self._draining = backlog > (MOST_UNREAD // 10 if self._draining else MOST_UNREAD)

    def _begin_again(self, now: datetime) -> None:
        """The broker has dropped this consumer over the dead letter at the head, and tells it nothing:
        docs/explanation/broker.md. A head that stops a second link is stored without its body, or it would
        hide all behind it for ever."""
        head = undelivered.clear_head_of_feed(self._management, self._know_node())
        if head is not None and head.letter_id == self._stopped_at:
            self._store_without_body(head, now)
        self._stopped_at = head.letter_id if head is not None else -1
        self._consumer.reconnect("the broker dropped the feed's consumer")

    def _store_without_body(self, head: undelivered.Head, now: datetime) -> None:
        row, message = read_letter(head.letter(), self._know_node(), now)
        row.queue = self._queue_of(row, message)
        store.store_safely([row], now)
        if death := undelivered.death_of(row, message):
            undelivered.keep_one_letter(self._management, [death], now)
        crash.point("feed: head stored")
        undelivered.drop_head_of_feed(self._management, head)
        log.warning(
            "message indexed without its body: the broker cannot read it",
            queue=row.queue,
            letter=head.letter_id,
        )

    def _know_node(self) -> str:
        """Another broker may have taken over: its ids name other messages."""
        if self._node_of_opening != self._inbox.openings:
            opening = self._inbox.openings
            self._node_id = str(self._management.attribute("broker", "NodeID"))
            self._node_of_opening = opening
        return self._node_id

    @uncollected
    def _store(self, deliveries: Sequence[Delivery], now: datetime) -> None:
        self._know_node()
        self._deaths = []
        rows = [row for delivery in deliveries if (row := self._row(delivery.encoded, now)) is not None]
        new = store.store_safely(rows, now)
        undelivered.keep_one_letter(self._management, self._deaths, now)
        log.info(
            "dead letters indexed",
            new=len(new),
            known=len(rows) - len(new),
            passed_over=len(deliveries) - len(rows),
        )

    def _row(self, delivered: bytes, now: datetime) -> DeadLetter | None:
        """None: it is not to be stored from here. Here alone a body is inflated: of all that waits it would
        be much."""
        encoded = from_core(delivered)
        if self._draining and self._lies_where_a_walk_finds_it(encoded):
            return None
        row, message = read_letter(encoded, self._node_id, now)
        row.queue = self._queue_of(row, message)
        # An AMQP message may say anything of itself: only what was made here of a Core message is believed.
        if encoded is not delivered and (death := undelivered.death_of(row, message)):
            self._deaths.append(death)
        return row

    def _lies_where_a_walk_finds_it(self, encoded: bytes) -> bool:
        """Says so because most dead letters of a long backlog have left their queues long ago, and a walk
        finds those that have not. Only one that no queue took has to be read here: the feed is all that has
        it, so it is never purged unread."""
        try:
            message = decode(encoded)
        except MessageUndecodable:
            return False
        origin = origin_of(message).queue
        return bool(origin) and self._names.has(dead_letter_queue(origin)) and not has_bad_text(message)

    def _queue_of(self, row: DeadLetter, message: Message | None) -> str:
        """Where the dead letter lies. One that no queue took is sent where it can be found, typed as it was.

        Killed after the sending and before the row: the dead letter comes again, and its copy has the same
        duplicate id.
        """
        if not row.orig_queue or message is None:
            return UNKNOWN_QUEUE
        own = dead_letter_queue(row.orig_queue)
        lies_there = self._names.has(own) and self._names.takes(own, origin_of(message).queue)
        if lies_there and not has_bad_text(message):
            return own
        unique = f"ma-rescued-{row.node_id}-{row.orig_queue}-{row.orig_message_id}"
        self._publisher.publish([Outgoing(f"{self._dla}::{UNKNOWN_QUEUE}", copy_of(message, unique))])
        log.warning("message without a dead-letter queue copied", setting=row.orig_queue, into=UNKNOWN_QUEUE)
        return UNKNOWN_QUEUE
