"""One run's work: a link to the setting's queue, its child processes, each message settled by the
specification's table. One thread; the link has a thread of its own, which nothing here blocks.

What happens when this process is killed in between is said where it matters: kma/run/commit.py,
kma/acknowledgement/open_deliveries.py.
"""

import time
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from broker.port import Consumer, Delivery
from contract import reasons
from contract.messages import Answer, DesiredRun
from contract.outcomes import Outcome
from contract.reasons import Reason
from kma.acknowledgement.open_deliveries import OpenDeliveries
from kma.children.pool import ChildPool
from kma.children.worker_slot import HandlingEnd, SlowHandlings, log_failure
from kma.delivery.credit import Credit
from kma.delivery.effects import Effects, Transaction
from kma.delivery.ending_records import RecordIds
from kma.delivery.in_flight import InFlight
from kma.delivery.outbox import SendResult
from kma.delivery.settlement import DeliverySettler
from kma.run.commit import Commits, Committer, PendingEffects, RunActs
from kma.run.inbox import Change, Lost, Opened, RemoteReply, RunInbox, Settled, Stop
from kma.run.minutes import RunMinutes
from kma.spool.journal import Journal
from kma.spool.records import Spool

TICK = 0.5  # seconds
_CHILDLESS_SECONDS = 5.0  # a link stays open so long while no child can be started

# A wish of the host that the run itself answers.
HostRequest = Stop | Change


class ConsumerLoop:
    """`connect` makes the link's consumer, not yet started."""

    def __init__(
        self,
        desired: DesiredRun,
        settler: DeliverySettler,
        journal: Journal,
        minutes: RunMinutes,
        pool: ChildPool,
        spool: Spool,
        inbox: RunInbox,
        connect: Callable[[], Consumer],
        acts: RunActs,
        pending: PendingEffects,
        log: Any,
    ) -> None:
        self._settler = settler
        self._journal = journal
        self._pool = pool
        self._spool = spool
        self._inbox = inbox
        self._connect = connect
        self._acts = acts
        self._pending = pending
        self._log = log
        self.allowance = Credit(desired, settler.handled + settler.failed + settler.temporary)
        self._open = OpenDeliveries(settler, acts, log)
        self._granted = 0
        self._waiting: deque[InFlight] = deque()
        self._commits = Commits(settler, acts, log)
        # Grows with each connection: what an older one delivered cannot be settled any more.
        self._connection_number = 0
        self._childless_since = 0.0
        self._committer = Committer(pending, settler, journal, pool)
        self._slow = SlowHandlings(log)
        self._records = RecordIds()
        self.minutes = minutes
        self.stopping = self.connected = False
        self.link_problem: Reason | None = None

    @property
    def drained(self) -> bool:
        """Nothing is at hand any more and every ending is stored and settled."""
        busy = self._commits or self._settler.exhausted.busy or self._open.busy
        return not (self._pool.holding or self._pending or busy)

    @property
    def finished(self) -> bool:
        """The run has handled as many messages as it shall."""
        return self.allowance.reached and self.drained and not self._open.waiting

    @property
    def problems(self) -> tuple[Reason, ...]:
        childless = None if self._pool.ready else self._pool.problem
        stored = self._pending.problem or self._spool.problem
        return tuple(filter(None, (childless, self.link_problem, stored, self._slow.problem)))

    def step(self, wish: Callable[[HostRequest], None]) -> None:
        """Waits for something to happen and does what follows; `wish` is told what the host asks for, in its
        turn."""
        settler = self._settler
        dues = (each.seconds_until_due() for each in (self._open, settler.accepts, settler.ordered))
        ended = self._pool.collect(0.0 if self._inbox.pending else min(TICK, *dues))
        for event in self._inbox.drain():
            if isinstance(event, (Stop, Change)):
                wish(event)
            else:
                self._take(event)
        # Before anything is settled or a slot is free: see kma/spool/minute.py.
        self.minutes.step(self._pool.processes, waits=self._spool.full and not self.stopping)
        self.minutes.count([one for one in ended if not one.to_commit])
        while self._pool.asked:
            self._pending.add(self._open.asked(self._pool.asked.popleft()))
        for one in ended:
            self._ended(one)
        self._pending.add(self._open.expire())
        self._pending.add(settler.due_accepts())
        if settler.counting.reason and not self.stopping:
            # Before a slot is released: a child that failed goes on with what it has left when its slot is
            # free.
            self.begin_stop()
        if not self.stopping:
            self._admit_freed()
        if self._pending:
            self._carry_out()
        now = time.monotonic()
        self._slow.look(self._pool.under_way(), self._pool.limit_seconds, now)
        self._keep_link(now)
        self._hand_out()

    def begin_stop(self) -> None:
        """Takes nothing more; what no child has begun is given back when the link is closed."""
        self.stopping = self._open.stopping = self._settler.accepts.stopping = True
        self._pending.add(self._settler.due_accepts())
        self._settler.ordered.forget()
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
        self._pending.add(self._open.lost(reasons.RUN_ENDED()))
        if self._pending:
            self._carry_out()

    def close_link(self) -> None:
        """Flushes settlements; the broker gives every unsettled message to another consumer at once."""
        if self._acts.consumer is not None:
            self._acts.consumer.settle(self._settler.accepts.take())
            self._acts.consumer.stop()
            self._acts.consumer = None
        self._forget_deliveries()

    # -- what came in ----------------------------------------------------------------------------------------

    def _take(self, event: Delivery | Opened | Lost | Settled | Answer | SendResult | RemoteReply) -> None:
        if isinstance(event, Delivery):
            if not self.stopping and self._acts.consumer is not None:
                self._receive(event)
        elif isinstance(event, Settled):
            self._committed(event)
        elif isinstance(event, Opened):
            self.connected, self.link_problem = True, None
        elif isinstance(event, Answer):
            self._pending.add(self._open.answered(event))
        elif isinstance(event, SendResult):
            self._pending.add(self._open.sent(event))
        elif isinstance(event, RemoteReply):
            self._acts.reply(event.asked, event.reply)
        else:
            self.link_problem = reasons.BROKER_LOST(detail=event.reason)
            self._log.warning("link lost", reason=event.reason, permanent=event.permanent)
            self._forget_deliveries()

    def _receive(self, delivery: Delivery) -> None:
        self._admit_unless(
            *self._settler.receive(
                delivery.tag, delivery.encoded, self._connection_number, self._records.next()
            )
        )
        self.allowance.window.saw(len(delivery.encoded))

    def _admit_unless(self, work: InFlight, instead: Effects | None) -> None:
        if instead is None:
            self._admit(work)
        else:
            self._pending.add(instead)

    def _admit(self, work: InFlight) -> None:
        if self._settler.guard.admit(work):
            self._open.admit(work)
            self._waiting.append(work)

    def _admit_freed(self) -> None:
        """At those that waited for another one of their key."""
        for work in self._settler.guard.freed():
            self._admit_unless(work, self._settler.repeated(work))

    def _forget_deliveries(self) -> None:
        """The connection is gone: the broker gives every unsettled message again. Handlings under way go
        on."""
        self.connected = False
        self._connection_number += 1
        self._waiting.clear()
        self._pending.effects.lose_connection()
        self._settler.accepts.take()
        self._settler.exhausted.lost()
        self._settler.guard.forget()
        self._settler.ordered.forget()
        in_doubt = self._commits.lose_connection()
        self.minutes.count(in_doubt)
        for ended in in_doubt:
            self._pool.release(ended.work.slot)
        self._pending.add(self._open.lost(reasons.CONNECTION_LOST()))
        self._pool.recall()

    # -- what ended ------------------------------------------------------------------------------------------

    def _ended(self, ended: HandlingEnd) -> None:
        work, handled = ended.work, ended.handled
        if self._settler.trace is not None:
            self._settler.trace(self._settler.traced(work, handled, self._journal.began_at(work.slot)))
        self.allowance.ended += handled.outcome is not Outcome.RELEASED
        if work.acknowledgement:
            self._pending.add(self._open.ended(ended))
            return
        gone = work.connection_number != self._connection_number
        if handled.outcome is Outcome.RETURNED and not gone:
            if ended.to_commit:
                self._commits.begin(ended)
            else:
                self._pending.add(self._settler.succeeded(work, datetime.now(UTC)))
        elif handled.outcome in (Outcome.RETURNED, Outcome.RELEASED):
            # Done, but the broker gives it again; or given back when the link is closed. Nothing is known of
            # it here.
            if ended.to_commit:
                self.minutes.count((ended,))
            self._settler.guard.over(work)
            self._pool.release(work.slot)
        else:
            self._failed(ended, gone)

    def _failed(self, ended: HandlingEnd, gone: bool) -> None:
        work, handled, at = ended.work, ended.handled, datetime.now(UTC)
        self._pending.add(
            self._settler.failed_with(work, handled, pid=ended.pid, seconds=ended.seconds, at=at, gone=gone)
        )
        log_failure(self._log, work, handled)

    def _committed(self, event: Settled) -> None:
        ended = self._commits.take(event.tag)
        effects = self._settler.confirmed(event.tag, event.problem)
        if effects is not None:
            self._pending.add(effects)
        elif ended is None:
            self._pending.add(self._open.confirmed(event.tag, event.problem))
        elif event.problem is None:
            self.minutes.count((ended,))
            self._pending.add(self._settler.succeeded(ended.work, datetime.now(UTC), accepted=True))
        else:
            self._acts.failed(ended.work.slot)
            refused = ended.refused(event.problem)
            self.minutes.count((refused,))
            self._failed(refused, gone=False)

    def _carry_out(self) -> None:
        freed = self._committer.carry_out(self._acts, self._wants)
        self.allowance.window.handled(freed, time.monotonic())

    def _wants(self, transaction: Transaction) -> bool:
        """Whether its message still waits for it: the link may have been lost since it was asked for."""
        return self._settler.exhausted.wants(transaction) or self._open.wants(transaction)

    def write_totals(self) -> None:
        self._committer.write_totals()

    # -- what goes out ---------------------------------------------------------------------------------------

    def _hand_out(self) -> None:
        back, waiting = self._pool.back, self._waiting
        while back:
            work = back.pop()
            if work.connection_number == self._connection_number and not self.stopping:
                waiting.appendleft(work)
        if not self.stopping:
            if self._settler.ordered.due:
                self._admit_unless(*self._settler.again(self._records.next()))
            blocked = self._spool.full or bool(self._pending.problem)
            if waiting and not blocked:
                self._offer(waiting)
            on_trial = self._settler.counting.on_trial
            credit = self.allowance.credit(on_trial=on_trial)
            credit = self._settler.accepts.widened(self._open.widened(credit, on_trial=on_trial))
            self._grant(0 if blocked else credit)
        # First this, then a look at `pending` in the next step: see RunInbox.
        self._inbox.hungry = not waiting

    def _offer(self, waiting: deque[InFlight]) -> None:
        self._pool.depth = self.allowance.window.depth
        on_trial = self._settler.counting.on_trial
        under_way = len(self._commits) + self._open.waiting
        number = self.allowance.begin(self._pool.holding, under_way, on_trial=on_trial)
        some = (
            waiting if number is None else deque(waiting.popleft() for _ in range(min(number, len(waiting))))
        )
        self._pool.offer(some)
        if some is not waiting:
            waiting.extendleft(reversed(some))

    def _grant(self, credit: int) -> None:
        if self._acts.consumer is not None and credit != self._granted:
            self._granted = credit
            self._acts.consumer.grant(credit)

    def _keep_link(self, now: float) -> None:
        """Open while there are children to work. An exclusive queue would feed nobody else while we cannot
        work."""
        if self.stopping:
            return
        if self._pool.ready:
            self._childless_since = 0.0
            if self._acts.consumer is None:
                self._acts.consumer = self._connect()
                self._granted = 0
                self._acts.consumer.start()
        elif self._acts.consumer is not None:
            self._childless_since = self._childless_since or now
            if now - self._childless_since > _CHILDLESS_SECONDS:
                self._log.error(
                    "link closed: no child process can be started", problem=str(self._pool.problem)
                )
                self.close_link()
