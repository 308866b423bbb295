"""`settle_with_sends`: one AMQP local transaction at a time on a consumer's session.

The steps, each waiting for the broker's answer without blocking the consumer's thread:

1. *Attach* a sender per destination. A refused address ends here, before any transaction.
2. *Declare*, send all within the transaction, wait for each outcome. The delivery is **not** part of the transaction
   yet: when a send fails, the transaction is discharged as failed and the delivery is as it was, so that the owner's
   FAIL is the one and only attempt that is counted.
3. *Accept* the delivery within the transaction and commit. A commit that fails after this took the delivery with it:
   the broker counts that as the attempt (see `AmqpConsumer`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from proton import Delivery, Described, Sender, ulong
from proton import Message as ProtonMessage

from broker.amqp_connection import AmqpConnection, attached, refusal
from broker.amqp_sender import ACCEPTED, TRANSACTIONAL, problem_of, transfer
from broker.errors import BrokerError, BrokerUnavailable

DECLARE, DISCHARGE, DECLARED = 0x31, 0x32, 0x33
MOST_SENDERS = 64


@dataclass(slots=True)
class Work:
    """One transaction to be: `sends` are (destination, encoded)."""

    tag: int
    sends: Sequence[tuple[str, bytes]]
    unsent: list[tuple[str, bytes]] = field(default_factory=list)
    outstanding: set[Delivery] = field(default_factory=set)
    id: Any = None
    problem: BrokerError | None = None
    control: Delivery | None = None
    committing: bool = False


# How a transaction ended: (tag, problem or None, whether the failed commit took the delivery with it).
Ended = Callable[[int, BrokerError | None, bool], None]


class Transactions:
    """The queue of transactions of one connection. `delivery_of(tag)` is None when the delivery is gone."""

    def __init__(self, connection: AmqpConnection, delivery_of: Callable[[int], Delivery | None], ended: Ended) -> None:
        self._connection = connection
        self._delivery_of = delivery_of
        self._ended = ended
        self._waiting: list[Work] = []
        self._work: Work | None = None
        self._coordinator: Sender | None = None
        self._senders: dict[str, Sender] = {}
        self._tags = 0

    @property
    def idle(self) -> bool:
        return self._work is None and not self._waiting

    def add(self, tag: int, sends: Sequence[tuple[str, bytes]]) -> None:
        self._waiting.append(Work(tag, sends, list(sends)))
        self.advance()

    # -- what the broker says -----------------------------------------------------------------------------------

    def link_ended(self, link: Any) -> None:
        for destination, sender in list(self._senders.items()):
            if sender == link:
                problem = refusal(link.remote_condition, f"the broker closed the link to {destination}")
                link.close()
                del self._senders[destination]
                if self._work is not None and any(to == destination for to, _ in self._work.sends):
                    self._fail(self._work, problem)
        if self._coordinator is not None and self._coordinator == link:
            problem = refusal(link.remote_condition, "the broker closed the transaction link")
            link.close()
            self._coordinator = None
            if self._work is not None:
                self._end(self._work, problem, self._work.committing)
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
            work.outstanding.discard(delivery)
            work.problem = work.problem or problem_of(delivery)
            delivery.settle()
        self.advance()

    # -- steps ----------------------------------------------------------------------------------------------------

    def advance(self) -> None:
        """Goes as far as it can without waiting."""
        while True:
            if self._work is None:
                if not self._waiting:
                    return
                self._work = self._waiting.pop(0)
            work = self._work
            if self._delivery_of(work.tag) is None:
                # Stale since a reconnect: nobody waits for the answer.
                self._work = None
                continue
            if not self._step(work):
                return

    def _step(self, work: Work) -> bool:
        """One step; False = the broker's answer is needed first."""
        if work.control is not None or not self._attached(work):
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

    def _attached(self, work: Work) -> bool:
        if self._coordinator is None:
            self._coordinator = self._connection.sender("")
            self._coordinator.target.type = self._coordinator.target.COORDINATOR
            self._coordinator.open()
        for destination, _ in work.sends:
            if destination not in self._senders:
                self._make_room(work)
                self._senders[destination] = self._connection.sender(destination)
                self._senders[destination].open()
        senders = [self._senders[destination] for destination, _ in work.sends]
        return all(attached(sender) for sender in [self._coordinator, *senders]) and self._coordinator.credit > 0

    def _make_room(self, work: Work) -> None:
        wanted = {destination for destination, _ in work.sends}
        for destination in list(self._senders):
            if len(self._senders) >= MOST_SENDERS and destination not in wanted:
                self._senders.pop(destination).close()

    def _send(self, work: Work) -> None:
        while work.unsent:
            destination, encoded = work.unsent[0]
            sender = self._senders[destination]
            if sender.credit <= 0:
                return
            self._tags += 1
            work.outstanding.add(transfer(sender, encoded, self._tags, work.id))
            work.unsent.pop(0)

    def _discharge(self, work: Work) -> None:
        delivery = self._delivery_of(work.tag)
        if work.problem is None and delivery is not None:
            state: Any = [work.id, Described(ulong(ACCEPTED), [])]
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
            work.id = data[0]
        elif state == Delivery.ACCEPTED and work.id is not None:
            self._end(work, work.problem, False)
        else:
            problem = work.problem or refusal(condition, "the broker refused the transaction")
            self._end(work, problem, work.committing)

    def _fail(self, work: Work, problem: BrokerError) -> None:
        """A link went away: before the declaration nothing happened; else the transaction must be ended."""
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
        self._ended(work.tag, problem, taken)
