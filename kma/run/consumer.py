"""One run's work: a link to the setting's queue, its child processes, each message settled by the
specification's table. One thread; the link has a thread of its own, which nothing here blocks.

What happens when this process is killed in between is said where it matters: kma/run/commit.py,
kma/acknowledgement/open_deliveries.py.
"""

import time
from collections import deque
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from broker.amqp.codec import decode
from broker.port import Consumer, Delivery, Outgoing, Settle
from contract import reasons
from contract.messages import Answer, DesiredRun, Mode
from contract.outcomes import Outcome, is_last
from contract.reasons import Reason
from kma.acknowledgement.open_deliveries import OpenDeliveries
from kma.children.pool import Asked, Pool
from kma.children.worker_slot import Ended, Slow
from kma.delivery.credit import Allowance
from kma.delivery.in_flight import Work
from kma.delivery.outbox import Departures, Sent
from kma.delivery.reports import RecordIds
from kma.delivery.settlement import SEND_REFUSED, Settling
from kma.handling.failure import failure
from kma.handling.handler import Handled
from kma.run.commit import Storing
from kma.run.inbox import Change, Inbox, Lost, Opened, Settled, Stop, Told
from kma.spool.journal import Journal
from kma.spool.records import Spool

TICK = 0.5  # seconds
KEYS_TOLD = 20  # of messages in one line of the log
_CHILDLESS_SECONDS = 5.0  # a link stays open so long while no child can be started

# A wish of the host that the run itself answers.
Wish = Stop | Change


def limit_seconds(desired: DesiredRun) -> float:
    """How long a handling may take, 0 = for ever: in TRANSACTED its transaction's limit too."""
    limits = [desired.handling_timeout_seconds]
    if desired.mode is Mode.TRANSACTED:
        limits.append(desired.transaction_timeout_seconds)
    return min((limit for limit in limits if limit > 0), default=0.0)


class Consuming:
    """`connect` makes the link's consumer, not yet started."""

    def __init__(
        self,
        desired: DesiredRun,
        settling: Settling,
        journal: Journal,
        pool: Pool,
        spool: Spool,
        inbox: Inbox,
        connect: Callable[[], Consumer],
        elsewhere: Callable[[Asked], None],
        departures: Departures,
        log: Any,
    ) -> None:
        self._settling = settling
        self._journal = journal
        self._pool = pool
        self._spool = spool
        self._inbox = inbox
        self._connect = connect
        self._log = log
        self.allowance = Allowance(desired, settling.handled + settling.failed + settling.temporary)
        self._open = OpenDeliveries(
            settling,
            departures,
            lambda *transaction: self._transact(*transaction),
            pool.reply,
            elsewhere,
            journal.commit,
            log,
        )
        settling.exhausted.transact = lambda *transaction: self._transact(*transaction)
        self._granted = 0
        self._consumer: Consumer | None = None
        self._waiting: deque[Work] = deque()
        self._committing: dict[int, Ended] = {}
        self._life = 0  # grows with each connection: what an older one delivered cannot be settled any more
        self._childless_since = 0.0
        self._storing = Storing(settling, spool, journal, pool, log)
        self._slow = Slow(log)
        self._records = RecordIds()
        self.stopping = self.connected = False
        self.link_problem: Reason | None = None

    @property
    def drained(self) -> bool:
        """Nothing is at hand any more and every ending is stored and settled."""
        busy = self._committing or self._settling.exhausted.busy or self._open.busy
        return not (self._pool.holding or self._settling.batch or busy)

    @property
    def finished(self) -> bool:
        """The run has handled as many messages as it shall."""
        return self.allowance.reached and self.drained and not self._open.waiting

    @property
    def problems(self) -> tuple[Reason, ...]:
        childless = None if self._pool.ready else self._pool.problem
        stored = self._storing.problem or self._spool.problem
        return tuple(filter(None, (childless, self.link_problem, stored, self._slow.problem)))

    def step(self, wish: Callable[[Wish], None]) -> None:
        """Waits for something to happen and does what follows; `wish` is told what the host asks for, in its
        turn."""
        settling = self._settling
        patience = min(TICK, self._open.patience(), settling.lazy.patience(), settling.ordered.patience())
        ended = self._pool.collect(0.0 if self._inbox.pending else patience)
        for event in self._inbox.drain():
            if isinstance(event, (Stop, Change)):
                wish(event)
            else:
                self._take(event)
        while self._pool.asked:
            self._open.asked(self._pool.asked.popleft())
        for one in ended:
            self._ended(one)
        self._open.expire()
        self._settling.flush_due()
        if self._settling.counting.reason and not self.stopping:
            # Before a slot is released: a child that failed goes on with what it has left when its slot is
            # free.
            self.begin_stop()
        if not self.stopping:
            self._look_again()
        if self._settling.batch:
            self._store_and_settle()
        now = time.monotonic()
        self._slow.look(self._pool.under_way(), self._pool.limit_seconds, now)
        self._keep_link(now)
        self._hand_out()

    def begin_stop(self) -> None:
        """Takes nothing more; what no child has begun is given back when the link is closed."""
        self.stopping = self._open.stopping = self._settling.lazy.stopping = True
        self._settling.flush_due()
        self._settling.ordered.forget()
        self._journal.ask_to_stop()
        self._grant(0)
        self._waiting.clear()
        self._pool.recall()

    def force(self) -> None:
        """The grace period is over: messages at hand are given back too, without an attempt (spec 2,
        "stop")."""
        self._pool.kill_all()

    def end_open(self) -> None:
        """What waits for an answer is given back with the link: first the MA is to know."""
        self._open.lost(reasons.RUN_ENDED())
        if self._settling.batch:
            self._store_and_settle()

    def close_link(self) -> None:
        """Flushes settlements; the broker gives every unsettled message to another consumer at once."""
        if self._consumer is not None:
            self._consumer.settle(self._settling.lazy.take())
            self._consumer.stop()
            self._consumer = None
        self._forget_deliveries()

    # -- what came in ----------------------------------------------------------------------------------------

    def _take(self, event: Delivery | Opened | Lost | Settled | Answer | Sent | Told) -> None:
        if isinstance(event, Delivery):
            if not self.stopping and self._consumer is not None:
                self._receive(event)
        elif isinstance(event, Settled):
            self._committed(event)
        elif isinstance(event, Opened):
            self.connected, self.link_problem = True, None
        elif isinstance(event, Answer):
            self._open.answered(event)
        elif isinstance(event, Sent):
            self._open.sent(event)
        elif isinstance(event, Told):
            self._pool.reply(event.asked, event.reply)
        else:
            self.link_problem = reasons.BROKER_LOST(detail=event.reason)
            self._log.warning("link lost", reason=event.reason, permanent=event.permanent)
            self._forget_deliveries()

    def _receive(self, delivery: Delivery) -> None:
        work = self._settling.receive(delivery.tag, delivery.encoded, self._life, self._records.next())
        if work is not None:
            self._admit(work)
        self.allowance.window.saw(len(delivery.encoded))

    def _admit(self, work: Work) -> None:
        if self._settling.guard.admit(work):
            self._open.admit(work)
            self._waiting.append(work)

    def _look_again(self) -> None:
        """At those that waited for another one of their key."""
        guard = self._settling.guard
        for work in guard.freed():
            if guard.repeats_one(work):
                self._settling.repeated(work)
            else:
                self._admit(work)

    def _forget_deliveries(self) -> None:
        """The connection is gone: the broker gives every unsettled message again. Handlings under way go
        on."""
        self.connected = False
        self._life += 1
        self._waiting.clear()
        self._settling.batch.settlements.clear()
        self._settling.lazy.take()
        self._settling.exhausted.lost()
        self._settling.guard.forget()
        self._settling.ordered.forget()
        if in_doubt := list(self._committing.values()):
            keys = [ended.work.identified.key.text for ended in in_doubt[:KEYS_TOLD]]
            self._log.warning("in doubt: committed, or coming back", number=len(in_doubt), message_keys=keys)
        for ended in in_doubt:
            self._pool.release(ended.work.slot)
        self._committing.clear()
        self._open.lost(reasons.CONNECTION_LOST())
        self._pool.recall()

    # -- what ended ------------------------------------------------------------------------------------------

    def _ended(self, ended: Ended) -> None:
        work, handled = ended.work, ended.handled
        self.allowance.ended += handled.outcome is not Outcome.RELEASED
        if work.acknowledgement:
            self._open.ended(ended)
            return
        gone = work.life != self._life
        if handled.outcome is Outcome.RETURNED and not gone:
            if handled.sends:
                self._commit(ended)
            else:
                self._settling.succeeded(work, datetime.now(UTC))
        elif handled.outcome in (Outcome.RETURNED, Outcome.RELEASED):
            # Done, but the broker gives it again; or given back when the link is closed. Nothing is known of
            # it here.
            self._settling.guard.over(work)
            self._pool.release(work.slot)
        else:
            self._failed(ended, handled, gone)

    def _failed(self, ended: Ended, handled: Handled, gone: bool) -> None:
        now = datetime.now(UTC)
        self._settling.failed_with(
            ended.work, handled, pid=ended.pid, seconds=ended.seconds, at=now, gone=gone
        )
        self._log.warning(
            "handling failed",
            outcome=handled.outcome.value,
            type=handled.failure.exception_type if handled.failure else "",
            attempt=ended.work.attempt,
            message_key=ended.work.identified.key.text,
        )

    def _commit(self, ended: Ended) -> None:
        """Everything that was sent and the acceptance are one transaction. Killed before its end: nothing was
        sent, the message comes back. Killed after: its record of a recovery is lost, no message is. It may be
        that of others too, unless the attempts that this may cost exhaust the message."""
        work = ended.work
        self._committing[work.tag] = ended
        sends = [Outgoing(destination, decode(encoded)) for destination, encoded in ended.handled.sends]
        self._transact(
            work.tag, sends, may_share=not is_last(work.attempt + 1, self._settling.desired.max_attempts)
        )

    def _transact(self, tag: int, sends: Sequence[Outgoing], *, may_share: bool = False) -> None:
        assert self._consumer is not None
        self._consumer.settle_with_sends(tag, sends, may_share=may_share)

    def _committed(self, event: Settled) -> None:
        ended = self._committing.pop(event.tag, None)
        if self._settling.exhausted.confirmed(event.tag, event.problem):
            return
        if ended is None:
            self._open.confirmed(event.tag, event.problem)
        elif event.problem is None:
            self._settling.succeeded(ended.work, datetime.now(UTC), accepted=True)
        else:
            self._failed(ended, Handled(Outcome.RAISED, failure(SEND_REFUSED, event.problem)), gone=False)

    def _store_and_settle(self) -> None:
        freed = self._storing.carry_out(self._settle)
        self.allowance.window.handled(freed, time.monotonic())

    def _settle(self, settlements: Sequence[tuple[int, Settle]]) -> None:
        if self._consumer is not None:
            self._consumer.settle(settlements)

    def write_totals(self) -> None:
        self._storing.write_totals()

    # -- what goes out ---------------------------------------------------------------------------------------

    def _hand_out(self) -> None:
        back, waiting = self._pool.back, self._waiting
        while back:
            work = back.pop()
            if work.life == self._life and not self.stopping:
                waiting.appendleft(work)
        if not self.stopping:
            if self._settling.ordered.due and (kept := self._settling.again(self._records.next())):
                self._admit(kept)
            blocked = self._spool.full or bool(self._storing.problem)
            if waiting and not blocked:
                self._offer(waiting)
            on_trial = self._settling.counting.on_trial
            credit = self.allowance.credit(on_trial=on_trial)
            credit = self._settling.lazy.widened(self._open.widened(credit, on_trial=on_trial))
            self._grant(0 if blocked else credit)
        # First this, then a look at `pending` in the next step: see Inbox.
        self._inbox.hungry = not waiting

    def _offer(self, waiting: deque[Work]) -> None:
        self._pool.depth = self.allowance.window.depth
        on_trial = self._settling.counting.on_trial
        under_way = len(self._committing) + self._open.waiting
        number = self.allowance.begin(self._pool.holding, under_way, on_trial=on_trial)
        some = (
            waiting if number is None else deque(waiting.popleft() for _ in range(min(number, len(waiting))))
        )
        self._pool.offer(some)
        if some is not waiting:
            waiting.extendleft(reversed(some))

    def _grant(self, credit: int) -> None:
        if self._consumer is not None and credit != self._granted:
            self._granted = credit
            self._consumer.grant(credit)

    def _keep_link(self, now: float) -> None:
        """Open while there are children to work. An exclusive queue would feed nobody else while we cannot
        work."""
        if self.stopping:
            return
        if self._pool.ready:
            self._childless_since = 0.0
            if self._consumer is None:
                self._consumer = self._connect()
                self._granted = 0
                self._consumer.start()
        elif self._consumer is not None:
            self._childless_since = self._childless_since or now
            if now - self._childless_since > _CHILDLESS_SECONDS:
                self._log.error(
                    "link closed: no child process can be started", problem=str(self._pool.problem)
                )
                self.close_link()
