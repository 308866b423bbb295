"""`settle_with_sends`: one AMQP local transaction at a time on a consumer's session.

The steps, each waiting for the broker's answer without blocking the consumer's thread:

1. *Attach* a sender per destination. A refused address ends here, before any transaction.
2. *Declare*, send all within the transaction, wait for each outcome. The delivery is **not** part of the
   transaction
   yet: when a send fails, the transaction is discharged as failed and the delivery is as it was, so that the
   owner's
   FAIL is the one and only attempt that is counted.
3. *Accept* the delivery within the transaction and commit. A commit that fails after this took the delivery
   with it:
   the broker counts that as the attempt (see `AmqpConsumer`).

Deliveries that may share one join a transaction until it is declared. When it does not commit, nobody is
told: those whose sends were refused are tried again alone, or each of them where the commit failed, which has
cost each an attempt.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from proton import Delivery, Described, Sender, ulong
from proton import Message as ProtonMessage

from broker.amqp.connection import AmqpConnection, attached, forget_state, refusal
from broker.amqp.publisher import ACCEPTED, TRANSACTIONAL, problem_of, transfer
from broker.port import BrokerError, BrokerUnavailable

DECLARE, DISCHARGE, DECLARED = 0x31, 0x32, 0x33
MOST_SENDERS = 64
MOST_SHARING, MOST_BYTES = 64, 1024 * 1024  # deliveries of one transaction, bytes that they send
# Seconds between a failed commit and whatever comes next for its delivery: the broker answers before its
# rollback is on disk, and what comes earlier ends the connection ("AMQ119008 … Cannot find ref to ack").
ROLLBACK = 1.0


@dataclass(slots=True)
class Part:
    """What one delivery brings into a transaction: `sends` are (destination, encoded)."""

    tag: int
    sends: Sequence[tuple[str, bytes]]
    may_share: bool

    @property
    def size(self) -> int:
        return sum(len(encoded) for _, encoded in self.sends)


@dataclass(slots=True)
class Work:
    """One transaction to be. `refused`: tags of the deliveries whose sends the broker did not take."""

    parts: list[Part]
    unsent: list[tuple[int, str, bytes]] = field(default_factory=list)
    outstanding: dict[Delivery, int] = field(default_factory=dict)
    refused: set[int] = field(default_factory=set)
    id: Any = None
    problem: BrokerError | None = None
    control: Delivery | None = None
    committing: bool = False

    @property
    def destinations(self) -> Iterator[str]:
        return (destination for part in self.parts for destination, _ in part.sends)


class Transactions:
    """The queue of transactions of one connection. `delivery_of(tag)` is None when the delivery is gone.
    `taken` is told each delivery that a failed commit took with it, `ended` how it ended for each."""

    def __init__(
        self,
        connection: AmqpConnection,
        delivery_of: Callable[[int], Delivery | None],
        taken: Callable[[int], None],
        ended: Callable[[int, BrokerError | None], None],
    ) -> None:
        self._connection = connection
        self._delivery_of = delivery_of
        self._taken = taken
        self._ended = ended
        self._waiting: list[Part] = []
        self._resume_at = 0.0
        self._work: Work | None = None
        self._coordinator: Sender | None = None
        self._senders: dict[str, Sender] = {}
        self._tags = 0

    @property
    def idle(self) -> bool:
        return self._work is None and not self._waiting

    @property
    def pausing(self) -> bool:
        """Something waits for a rollback: `advance` is to be called again."""
        return self._work is None and bool(self._waiting)

    def add(self, tag: int, sends: Sequence[tuple[str, bytes]], *, may_share: bool) -> None:
        self._waiting.append(Part(tag, sends, may_share))
        self.advance()

    # -- what the broker says --------------------------------------------------------------------------------

    def link_ended(self, link: Any) -> None:
        for destination, sender in list(self._senders.items()):
            if sender == link:
                problem = refusal(link.remote_condition, f"the broker closed the link to {destination}")
                link.close()
                del self._senders[destination]
                if self._work is not None and destination in self._work.destinations:
                    self._fail(self._work, problem, destination)
        if self._coordinator is not None and self._coordinator == link:
            problem = refusal(link.remote_condition, "the broker closed the transaction link")
            link.close()
            self._coordinator = None
            if self._work is not None and self._work.committing:
                raise problem  # committed or not: the owner has to take the connection for lost
            if self._work is not None:
                self._end(self._work, problem, False)
        self.advance()

    def delivery_updated(self, delivery: Delivery) -> None:
        """An outcome of something that we sent."""
        work = self._work
        if work is None:
            return
        if delivery == work.control:
            if delivery.remote_state:
                self._controlled(work, delivery)
        elif delivery in work.outstanding and (delivery.settled or delivery.remote_state):
            tag = work.outstanding.pop(delivery)
            if (problem := problem_of(delivery)) is not None:
                work.refused.add(tag)
                work.problem = work.problem or problem
            delivery.settle()
        self.advance()

    # -- steps -----------------------------------------------------------------------------------------------

    def advance(self) -> None:
        """Goes as far as it can without waiting."""
        while True:
            if self._work is None:
                if not self._waiting or time.monotonic() < self._resume_at:
                    return
                self._work = Work([self._waiting.pop(0)])
            work = self._work
            if all(self._delivery_of(part.tag) is None for part in work.parts):
                # Stale since a reconnect: nobody waits for the answer.
                self._work = None
                continue
            if not self._step(work):
                return

    def _step(self, work: Work) -> bool:
        """One step; False = the broker's answer is needed first."""
        if (
            work.control is not None
            or not self._coordinated()
            or (work.problem is None and not self._attached(work))
        ):
            return False
        if work.id is None:
            self._control(work, DECLARE, [None])
            return False
        if work.problem is None:
            self._send(work)
        if work.outstanding or (work.unsent and work.problem is None):
            return False
        self._discharge(work)
        return False

    def _coordinated(self) -> bool:
        if self._coordinator is None:
            self._coordinator = self._connection.sender("")
            self._coordinator.target.type = self._coordinator.target.COORDINATOR
            self._coordinator.open()
        return attached(self._coordinator) and self._coordinator.credit > 0

    def _attached(self, work: Work) -> bool:
        for destination in work.destinations:
            if destination not in self._senders:
                self._make_room(work)
                self._senders[destination] = self._connection.sender(destination)
                self._senders[destination].open()
        return all(attached(self._senders[destination]) for destination in set(work.destinations))

    def _make_room(self, work: Work) -> None:
        wanted = set(work.destinations)
        for destination in list(self._senders):
            if len(self._senders) >= MOST_SENDERS and destination not in wanted:
                self._senders.pop(destination).close()

    def _declared(self, work: Work, transaction: Any) -> None:
        work.id = transaction
        size, destinations = work.parts[0].size, set(work.destinations)
        while work.parts[0].may_share and self._waiting and len(work.parts) < MOST_SHARING:
            part = self._waiting[0]
            size += part.size
            destinations.update(destination for destination, _ in part.sends)
            if not part.may_share or size > MOST_BYTES or len(destinations) > MOST_SENDERS:
                break
            work.parts.append(self._waiting.pop(0))
        work.unsent = [
            (part.tag, destination, encoded) for part in work.parts for destination, encoded in part.sends
        ]

    def _send(self, work: Work) -> None:
        sent = 0
        for tag, destination, encoded in work.unsent:
            sender = self._senders[destination]
            if sender.credit <= 0:
                break
            self._tags += 1
            work.outstanding[transfer(sender, encoded, self._tags, work.id)] = tag
            sent += 1
        del work.unsent[:sent]

    def _discharge(self, work: Work) -> None:
        deliveries = [self._delivery_of(part.tag) for part in work.parts]
        if work.problem is None and None not in deliveries:
            for delivery in deliveries:
                assert delivery is not None
                state: Any = [work.id, Described(ulong(ACCEPTED), [])]
                forget_state(delivery)  # of a shared commit that failed
                delivery.local.data = state
                delivery.update(TRANSACTIONAL)
            work.committing = True
        self._control(work, DISCHARGE, [work.id, not work.committing])

    def _control(self, work: Work, kind: int, fields: list[Any]) -> None:
        assert self._coordinator is not None
        self._tags += 1
        body = ProtonMessage(body=Described(ulong(kind), fields)).encode()
        work.control = transfer(self._coordinator, body, self._tags)

    def _controlled(self, work: Work, delivery: Delivery) -> None:
        work.control = None
        state, data, condition = delivery.remote_state, delivery.remote.data, delivery.remote.condition
        delivery.settle()
        if state == DECLARED and data:
            self._declared(work, data[0])
        elif state == Delivery.ACCEPTED and work.id is not None:
            self._end(work, work.problem, False)
        else:
            problem = work.problem or refusal(condition, "the broker refused the transaction")
            self._end(work, problem, work.committing)

    def _fail(self, work: Work, problem: BrokerError, destination: str) -> None:
        """A link went away: before the declaration nothing happened; else the transaction must be ended."""
        work.refused.update(part.tag for part in work.parts if destination in (to for to, _ in part.sends))
        if work.id is None and work.control is None:
            self._end(work, problem, False)
            return
        work.problem = work.problem or problem
        work.unsent.clear()
        work.outstanding.clear()

    def _end(self, work: Work, problem: BrokerError | None, taken: bool) -> None:
        self._work = None
        if problem is None and not work.committing:
            problem = BrokerUnavailable("the transaction was not committed")
        if taken:
            for part in work.parts:
                self._taken(part.tag)
        if problem is not None and len(work.parts) > 1:
            self._try_again(work, taken)
            return
        for part in work.parts:
            self._ended(part.tag, problem)

    def _try_again(self, work: Work, taken: bool) -> None:
        """It is not known which of them a failed commit did not like."""
        if taken:
            self._resume_at = time.monotonic() + ROLLBACK
        for part in work.parts:
            part.may_share = bool(work.refused) and not taken and part.tag not in work.refused
        self._waiting[:0] = work.parts
