"""The feed: every new dead letter comes through one queue and becomes a row. Accepted after the commit."""

import queue
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime

import structlog
from django.db import DatabaseError, InterfaceError, OperationalError
from django.utils import timezone

from agents.services.signs import sign_of_life
from broker.amqp_codec import decode
from broker.errors import BrokerError
from broker.port import Consumer, Delivery, Management, Outgoing, Publisher, Settle
from contract.properties import UNKNOWN, dead_letter_queue
from dlq import index
from dlq.models import DeadLetter
from dlq.queue_names import QueueNames
from dlq.reading import letter_row, raw_row
from dlq.rescue import copy_of, has_bad_text

log = structlog.get_logger(__name__)

BATCH = 200
# Deliveries outstanding at a time: bounds memory, and what is delivered again after a crash.
WINDOW = 400
# Seconds between two signs of life, and before a step that failed is tried again.
SIGN_EVERY = 5.0
PAUSE = 2.0
UNKNOWN_QUEUE = dead_letter_queue(UNKNOWN)


class Inbox:
    """The consumer's events, taken at once. Deliveries of a lost link stay: handling one twice changes nothing."""

    def __init__(self) -> None:
        self.deliveries: queue.SimpleQueue[Delivery] = queue.SimpleQueue()
        self.openings = 0

    def opened(self) -> None:
        self.openings += 1
        log.info("feed is open")

    def lost(self, reason: str, permanent: bool) -> None:
        log.warning("feed waits for the broker", reason=reason, permanent=permanent)

    def delivered(self, delivery: Delivery) -> None:
        self.deliveries.put(delivery)

    def settled(self, tag: int, problem: str | None) -> None:
        """Nothing is settled in transactions here."""


class Feed:
    """Turns deliveries into rows. `step` is one batch; a batch that failed is tried again by the next step."""

    def __init__(
        self, consumer: Consumer, inbox: Inbox, management: Management, publisher: Publisher, dla: str
    ) -> None:
        self._consumer = consumer
        self._inbox = inbox
        self._management = management
        self._publisher = publisher
        self._dla = dla
        self._names = QueueNames(management)
        self._node_id = ""
        self._node_of_opening = 0
        self._pending: list[Delivery] = []
        self._next_sign = 0.0

    def start(self) -> None:
        self._consumer.start()
        self._consumer.grant(WINDOW)

    def stop(self) -> None:
        """What was not accepted comes again."""
        self._consumer.stop()
        self._publisher.close()

    def step(self, timeout: float = 1.0) -> bool:
        """Whether letters were stored. Never raises for the broker or the database: it says so and waits a moment."""
        self._pending = self._pending or self._take(timeout)
        try:
            self._give_sign()
            if not self._pending:
                return False
            self._store(self._pending, timezone.now())
        except (BrokerError, OperationalError, InterfaceError) as error:
            log.warning("feed waits", reason=str(error), letters=len(self._pending))
            time.sleep(PAUSE)
            return False
        self._consumer.settle([(delivery.tag, Settle.ACCEPT) for delivery in self._pending])
        self._pending = []
        return True

    def _take(self, timeout: float) -> list[Delivery]:
        found: list[Delivery] = []
        with suppress(queue.Empty):
            found.append(self._inbox.deliveries.get(timeout=timeout))
            while len(found) < BATCH:
                found.append(self._inbox.deliveries.get_nowait())
        return found

    def _give_sign(self) -> None:
        if time.monotonic() >= self._next_sign:
            sign_of_life("feed", timezone.now())
            self._next_sign = time.monotonic() + SIGN_EVERY

    def _store(self, deliveries: Sequence[Delivery], now: datetime) -> None:
        if self._node_of_opening != self._inbox.openings:
            # Another broker may have taken over: its ids name other messages.
            opening = self._inbox.openings
            self._node_id = str(self._management.attribute("broker", "NodeID"))
            self._node_of_opening = opening
        rows = [self._row(delivery.encoded, now) for delivery in deliveries]
        try:
            new = index.store(rows, now)
        except (OperationalError, InterfaceError):
            raise
        except (DatabaseError, ValueError, TypeError) as error:
            log.error("letters stored one by one", reason=str(error))
            new = [row for delivery in deliveries for row in self._store_one(delivery.encoded, now)]
        log.info("letters stored", new=len(new), known=len(deliveries) - len(new))

    def _store_one(self, encoded: bytes, now: datetime) -> list[DeadLetter]:
        """One that the database refuses is kept as bytes: it must not stop the others."""
        try:
            return index.store([self._row(encoded, now)], now)
        except (OperationalError, InterfaceError):
            raise
        except (DatabaseError, ValueError, TypeError) as error:
            raw = raw_row(encoded, self._node_id, now, f"{type(error).__name__}: {error}")
            raw.queue = UNKNOWN_QUEUE
            return index.store([raw], now)

    def _row(self, encoded: bytes, now: datetime) -> DeadLetter:
        row = letter_row(encoded, self._node_id, now)
        row.queue = self._queue_of(row, encoded)
        return row

    def _queue_of(self, row: DeadLetter, encoded: bytes) -> str:
        """Where the letter lies. One that no queue took is sent where it can be found, typed as it was."""
        if not row.orig_queue:
            return UNKNOWN_QUEUE
        own = dead_letter_queue(row.orig_queue)
        message = decode(encoded)
        if self._names.has(own) and not has_bad_text(message):
            return own
        unique = f"ma-rescued-{row.node_id}-{row.orig_queue}-{row.orig_message_id}"
        self._publisher.publish([Outgoing(f"{self._dla}::{UNKNOWN_QUEUE}", copy_of(message, unique))])
        log.warning("letter without a queue rescued", setting=row.orig_queue, into=UNKNOWN_QUEUE)
        return UNKNOWN_QUEUE
