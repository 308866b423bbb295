"""One run of a standalone agent in a thread of its own: `run_agent` begins, ends, and where the setting says
so begins again, up to the closing record. To the outside it is a `Run`.
"""

import os
import select
import time
from datetime import UTC, datetime

from contract import reasons
from contract.messages import DesiredRun
from contract.outcomes import Outcome
from contract.reasons import Reason
from contract.records import RunState
from contract.wire import dump
from kma.children.worker_slot import FIRST_PAUSE, LONGEST_PAUSE, HandlingEnd
from kma.delivery.in_flight import identity_bytes, standalone_attempt
from kma.delivery.outbox import StandaloneOutbox
from kma.handling.handler import HandlingResult
from kma.run.inbox import Change, Stop
from kma.run.minutes import RunMinutes
from kma.run.thread import Children, ContainerServices, RunThread
from kma.spool.journal import IDENTITY, Journal
from kma.standalone.attempt import SLOT, STOPPED, StandaloneAttempt
from kma.standalone.lease import Lease, boottime_ns

TICK = 0.2  # seconds
_STORE_SECONDS = 10.0  # beyond the grace period, for a spool that cannot be written


class StandaloneRun(RunThread):
    """`heard_from_ma` from any thread too."""

    def __init__(self, desired: DesiredRun, agent_version: str, services: ContainerServices) -> None:
        super().__init__(desired, agent_version, services)
        self._answered_ns = 0
        self._beginning = standalone_attempt(b"")
        self._current: StandaloneAttempt | None = None
        self._starts = 0
        self._early_deaths = 0
        self._start_at = 0.0  # CLOCK_MONOTONIC
        self._over = False

    def heard_from_ma(self, sent_ns: int) -> None:
        self._answered_ns = sent_ns

    # -- the run's thread ------------------------------------------------------------------------------------

    def _live(self) -> None:
        # What the run begins with: whatever follows is compared with it after a kill.
        self._services.ledger.note(self._settler.progress(self._restarts))
        self._journal = Journal.create(self.journal_path, self._about(), 1)
        self._minutes = RunMinutes(self._journal, self._settler.facts, self._services.spool)
        self._minutes.tell = self._services.durations
        self._lease = Lease(self._journal.file)
        self._outbox = StandaloneOutbox(self._services.publisher)
        try:
            while not self._ended:
                self._step()
        finally:
            if self._current is not None:
                self._current.abandon()
            self._outbox.close()
            self._lease.close()
            left = not self._minutes.finish() or bool(self._pending)
            self._write_totals()
            self._journal.close()
        self._end(left)

    def _about(self) -> dict[str, object]:
        """`once`: a start that is found unfinished after a kill has failed the run."""
        about = {"run": dump(self._record_run), "queue": "", "destination": "", "masked": []}
        return {**about, "standalone": True, "once": not self.desired.restart_seconds}

    @property
    def _ended(self) -> bool:
        if self._current is not None or not (self._over or self._stop is not None):
            return False
        return not self._pending or time.monotonic() > self._deadline + _STORE_SECONDS

    def _step(self) -> None:
        self._wait()
        self._minutes.step(self._processes, waits=self._waits_for_spool)
        self._hear()
        self._renew_lease()
        if self._pending:
            self._store()
        elif self._current is None:
            if not self._over and self._stop is None and self._may_start():
                self._start_one()
        else:
            self._see_to(self._current)
        self._show_standalone()

    def _processes(self) -> list[int]:
        return [self._current.pid] if self._current is not None else []

    @property
    def _waits_for_spool(self) -> bool:
        return self._current is None and self._services.spool.full and self._stop is None

    def _wait(self) -> None:
        poll = select.poll()
        poll.register(self._inbox.descriptor, select.POLLIN)
        poll.register(self._outbox.descriptor, select.POLLIN)
        if self._current is not None:
            self._current.watch(poll)
        poll.poll(TICK * 1000)

    def _hear(self) -> None:
        for event in self._inbox.drain():
            if isinstance(event, Change):
                self._settler.change(event.desired)
            elif isinstance(event, Stop):
                self._hear_stop(event)

    def _hear_stop(self, wish: Stop) -> None:
        self._deadline = min(self._deadline, time.monotonic() + self.desired.grace_seconds)
        if self._stop is not None:
            self._stop = Stop(self._stop.close or wish.close, self._stop.reason or wish.reason)
            return
        self._stop = wish
        self._log.info("run stops", reason=wish.reason)
        self._journal.ask_to_stop()  # before the signal, which is only the call to look here
        if self._current is not None:
            self._current.ask_to_stop()

    def _renew_lease(self) -> None:
        """A lease that is over is never renewed for the start that held it: this process may have been
        stopped for long, and another server begun meanwhile."""
        if self._current is not None and self._lease.over(boottime_ns()):
            self._current.lapse()
        else:
            self._lease.write(self._lease_until_ns())

    def _lease_until_ns(self) -> int:
        """0 without a lease; 1, long ago, where the MA has not answered yet."""
        seconds = self.desired.lease_seconds
        return max(1, self._answered_ns + int(seconds * 1e9) if self._answered_ns else 1) if seconds else 0

    # -- beginning -------------------------------------------------------------------------------------------

    def _may_start(self) -> bool:
        if self._lease.over(boottime_ns()):
            self.problems = (reasons.WAITS_FOR_MA(),)
            return False
        if (problem := self._services.spool.problem) is not None:
            self.problems = (problem,)
            return False
        return time.monotonic() >= self._start_at

    def _start_one(self) -> None:
        """Killed from here on: before the child has written its start, nobody began; after it, the start is
        found."""
        self._beginning = work = standalone_attempt(os.urandom(16))
        self._journal.claim(SLOT, work.record, work.attempt, 0, 0, identity_bytes(work.identified), IDENTITY)
        self._lease.begin_anew()
        try:
            self._current = StandaloneAttempt(self._journal, self._lease, self._job(), self._outbox)
        except OSError as error:  # no memory, too many processes or open files
            self._not_begun(reasons.NO_PROCESS(detail=str(error)))
            return
        self._starts += 1
        self._restarts += self._starts > 1
        self._write_totals()

    def _not_begun(self, problem: Reason) -> None:
        self._journal.free(SLOT)
        self.problems = (problem,)
        pause = min(FIRST_PAUSE * 2**self._early_deaths, LONGEST_PAUSE)
        self._early_deaths += 1
        self._start_at = time.monotonic() + pause

    # -- while it runs, and after ----------------------------------------------------------------------------

    def _see_to(self, current: StandaloneAttempt) -> None:
        current.read()
        if current.dead:
            self._current = None
            handled, seconds = current.end()
            self._after(handled, current.pid, seconds)
            return
        current.look_after(self.desired.handling_timeout_seconds)
        if time.monotonic() > self._deadline and current.killed_as is None:
            self._log.warning("grace period ended: the process is killed")
            current.kill(STOPPED)

    def _after(self, handled: HandlingResult | None, pid: int, seconds: float) -> None:
        if handled is None or handled.outcome is Outcome.RELEASED:
            self._after_nothing()
            return
        self._early_deaths = 0
        self._minutes.count((HandlingEnd(self._beginning, handled, pid, seconds),))
        at = datetime.now(UTC)
        if handled.outcome is Outcome.RETURNED:
            self._pending.add(self._settler.succeeded(self._beginning, at, accepted=True))
            self._finish("run_agent returned")
        else:
            # No broker waits for a settlement: what failed is stored, and that is all.
            effects = self._settler.failed_with(
                self._beginning, handled, pid=pid, seconds=seconds, at=at, gone=True
            )
            self._pending.add(effects)
            self._after_failure(handled)
        self._store()

    def _after_nothing(self) -> None:
        """It was stopped, or its lease is over: neither failed nor succeeded. Or it died before it began."""
        if self._stop is not None:
            self._journal.free(SLOT)
        elif self._lease.lapsed or self._lease.over(boottime_ns()):
            self._journal.free(SLOT)
            self.problems = (reasons.WAITS_FOR_MA(),)
            self._log.warning("lease expired: stopped until the MA answers")
        else:
            self._not_begun(reasons.ENDED_BEFORE_IT_BEGAN())

    def _after_failure(self, handled: HandlingResult) -> None:
        kind = handled.failure.exception_type if handled.failure is not None else handled.outcome.value
        again = self.desired.restart_seconds
        self._log.warning("run_agent failed", outcome=handled.outcome.value, type=kind, again_seconds=again)
        if reason := self._settler.counting.reason:
            self._log.error("breaker tripped", reason=reason)
            self._tripped = reason
            self._finish(reason)
        elif not again:
            self._failed = True
            self._finish(f"run_agent failed: {kind}")
        else:
            self._start_at = time.monotonic() + again
            self.state = (
                RunState.STARTING
            )  # before the problem, which a report must not tell of one that runs
            self.problems = (reasons.STARTED_AGAIN(type=kind, seconds=again),)

    def _finish(self, reason: str) -> None:
        """The run is over by itself: it closes, also where only the KMA was to stop."""
        self._over = self.stopping = True
        self._stop = Stop(True, self._stop.reason if self._stop is not None and self._stop.close else reason)

    def _store(self) -> None:
        """Killed before: the start is found in the journal (`kma died`, or FINISHED). Killed after: the
        protocol is there under the same id, and what follows from it, too."""
        if self._pending.store(self._restarts, always=True) is None:
            if self._pending.problem is not None:
                self.problems = (self._pending.problem,)
            return
        self._write_totals()
        if self._tripped:
            self._services.report_now()
        if not self._over:
            self._journal.free(
                SLOT
            )  # else the slot says how the run ended, until its closing record is there

    def _write_totals(self) -> None:
        self._journal.write_totals(self._settler.totals(self._restarts))

    def _show_standalone(self) -> None:
        began = self._current is not None and self._current.began
        self._holding, self._connected = int(began), began
        self.children = Children(int(began), self._minutes.children_bytes if began else 0)
        if began:
            self.problems = ()
        if self._tripped:
            self.state = RunState.INTERRUPTED
        elif self._stop is not None:
            self.state = RunState.DRAINING
        else:
            self.state = RunState.RUNNING if began else RunState.STARTING
