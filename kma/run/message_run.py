"""A run that handles messages: its link and its children, until it is told to stop or has done enough."""

import time
from dataclasses import asdict

from contract.messages import DesiredRun, Mode
from contract.records import RunState
from contract.wire import dump
from kma.children.pool import SLOTS_PER_CHILD, ChildPool
from kma.delivery.outbox import Outbox
from kma.run.commit import RunActs
from kma.run.consumer import ConsumerLoop, HostRequest
from kma.run.inbox import Change, RemoteReply, Stop
from kma.run.minutes import RunMinutes
from kma.run.thread import Children, RunThread
from kma.sdk.job import AgentQuestion
from kma.spool.journal import Journal

LIMIT = "limit"  # why a run has ended that has handled as many messages as it shall
_COMMIT_SECONDS = (
    10.0  # beyond the grace period: for transactions under way and a spool that cannot be written
)


def limit_seconds(desired: DesiredRun) -> float:
    """How long a handling may take, 0 = for ever: in TRANSACTED its transaction's limit too."""
    limits = [desired.handling_timeout_seconds]
    if desired.mode is Mode.TRANSACTED:
        limits.append(desired.transaction_timeout_seconds)
    return min((limit for limit in limits if limit > 0), default=0.0)


class MessageRun(RunThread):
    """See RunThread."""

    def _live(self) -> None:
        desired = self.desired
        # What the run begins with, before it takes a message: whatever follows is compared with it after a
        # kill.
        self._services.ledger.note(self._settler.progress(self._restarts))
        about = {"run": dump(self._record_run), "queue": desired.queue, "destination": desired.destination}
        about["masked"] = list(desired.masked_properties)
        journal = Journal.create(self.journal_path, about, SLOTS_PER_CHILD * desired.concurrency)
        pool = ChildPool(
            desired.concurrency, journal, self._job(), limit_seconds(desired), self._inbox.descriptor
        )
        pool.restarts = self._restarts
        outbox = Outbox(self._services.publisher, self._inbox.put, self._log)
        minutes = RunMinutes(journal, self._settler.facts, self._services.spool)
        minutes.tell = self._services.durations
        loop = ConsumerLoop(
            desired,
            self._settler,
            journal,
            minutes,
            pool,
            self._services.spool,
            self._inbox,
            lambda: self._services.connect(self.desired, self._inbox),
            RunActs(pool, journal, outbox, self._elsewhere),
            self._pending,
            self._log,
        )
        loop.write_totals()
        try:
            self._work(loop, pool)
        finally:
            try:
                loop.end_open()
            finally:
                loop.close_link()
            pool.close()
            outbox.close()
            left = not loop.minutes.finish() or bool(self._pending)
            loop.write_totals()
            journal.close()
        self._end(left)

    def _elsewhere(self, asked: AgentQuestion) -> None:
        self._services.elsewhere(asked.question, lambda reply: self._inbox.put(RemoteReply(asked, reply)))

    def _work(self, loop: ConsumerLoop, pool: ChildPool) -> None:
        def answer(wish: HostRequest) -> None:
            if isinstance(wish, Change):
                self._settler.change(wish.desired)
                loop.allowance.limit = wish.desired.limit_messages
                pool.limit_seconds = limit_seconds(wish.desired)
            elif self._stop is None:
                self._begin_stop(wish, loop)
            else:
                self._stop = Stop(self._stop.close or wish.close, self._stop.reason or wish.reason)

        forced = False
        while not (loop.stopping and loop.drained):
            if loop.finished and self._stop is None:
                self._begin_stop(Stop(True, LIMIT), loop)
                continue
            loop.step(answer)
            self._heed_breaker(loop)
            self._show(loop, pool)
            now = time.monotonic()
            if now > self._deadline and not forced:
                forced = True
                self._log.warning("grace period ended: child processes are killed", in_progress=pool.holding)
                loop.force()
            if now > self._deadline + _COMMIT_SECONDS:
                return

    def _begin_stop(self, stop: Stop, loop: ConsumerLoop) -> None:
        self.stopping = True
        self._stop = stop
        self._deadline = min(self._deadline, time.monotonic() + self.desired.grace_seconds)
        self._log.info("run stops", reason=stop.reason)
        loop.begin_stop()

    def _heed_breaker(self, loop: ConsumerLoop) -> None:
        """After a trip the run ends as after a stop, whatever else it is told meanwhile."""
        reason = self._settler.counting.reason
        if reason and not self._tripped:
            self._tripped = reason
            self._log.error("breaker tripped", reason=reason, counts=asdict(self._settler.counting.counts))
            self._begin_stop(Stop(True, reason), loop)
        if reason and not self._told and not self._pending:
            self._told = True
            self._services.report_now()

    def _show(self, loop: ConsumerLoop, pool: ChildPool) -> None:
        self._connected, self._holding, self._restarts = loop.connected, pool.holding, pool.restarts
        self.problems = loop.problems
        self.children = Children(pool.ready_processes, loop.minutes.children_bytes)
        if self._tripped:
            self.state = RunState.INTERRUPTED
        elif loop.stopping:
            self._failed = self._failed or self.state is RunState.FAILED
            self.state = RunState.DRAINING
        elif pool.problem and not pool.ready:
            self.state = RunState.FAILED
        elif pool.ready and loop.connected:
            self.state = RunState.RUNNING
        elif self.state is RunState.FAILED:
            self.state = RunState.STARTING
