"""One run in a thread of its own, from the first child process to the closing record."""

import threading
import time
from dataclasses import asdict

from contract import reasons
from contract.messages import Answer, DesiredRun, Mode, RunReport
from contract.reasons import Reason
from contract.records import RecordRun, RunState
from contract.wire import dump
from kma.children.pool import SLOTS_PER_CHILD, Pool
from kma.delivery.breaker import first_carried, told_counts
from kma.delivery.message_identity import KnownAttempts
from kma.delivery.outbox import Departures
from kma.delivery.settlement import Settling
from kma.handling.frames import JOB, json_frame
from kma.logs import logger
from kma.run.commit import PendingEffects, RunActs
from kma.run.consumer import Consuming, Wish
from kma.run.inbox import Change, Inbox, Stop, Told
from kma.run.services import Surroundings, close_run
from kma.sdk.job import AgentQuestion
from kma.spool.journal import Journal
from kma.spool.ledger import run_key

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


class Run:
    """Start it once; `stop` and `change` it from any thread; it has ended when it is not `alive`."""

    def __init__(self, desired: DesiredRun, agent_version: str, around: Surroundings) -> None:
        self.desired = desired
        self.key = run_key(desired.activation, desired.epoch)
        self.state = RunState.STARTING
        self.problems: tuple[Reason, ...] = ()
        self.crashed = False
        self.stopping = False
        self.journal_path = around.journals / f"{desired.activation}-{desired.epoch}-{time.time_ns()}.journal"
        self._around = around
        self._record_run = RecordRun(
            desired.setting, desired.activation, desired.epoch, around.server, desired.agent, agent_version
        )
        stored = around.ledger.open_run(self.key, {"run": dump(self._record_run)})
        self._settling = Settling(
            self._record_run,
            desired,
            stored.totals,
            first_carried(around.ledger.carried(desired.setting), desired),
            KnownAttempts(around.spool.attempts(desired.setting)),
            around.spool.handled_keys,
        )
        self._restarts = stored.totals.restarts
        self._holding = 0
        self._connected = False
        self._failed = False
        self._tripped = ""
        self._told = False
        self._log = logger(activation=str(desired.activation), setting=desired.setting, server=around.server)
        self._pending = PendingEffects(self._settling, around.spool, self._log)
        self._inbox = Inbox()
        self._stop: Stop | None = None
        self._deadline = float("inf")
        self._thread = threading.Thread(target=self._main, name=f"run {desired.setting}", daemon=True)

    # -- any thread ------------------------------------------------------------------------------------------

    def start(self) -> None:
        self._thread.start()

    def stop(self, *, close: bool, reason: str = "") -> None:
        """Finishes what is at hand within the grace period and gives the rest back. `close`: the MA does not
        want the run any more, it ends with its closing record."""
        self.stopping = True
        self._inbox.put(Stop(close, reason))

    def change(self, desired: DesiredRun) -> None:
        """Other limits or known attempts, without a restart."""
        self.desired = desired
        self._inbox.put(Change(desired))

    def pass_on(self, answer: Answer) -> None:
        """Somebody has answered a delivery of this run; told again and again, it counts once."""
        self._inbox.put(answer)

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def join(self, timeout: float | None = None) -> None:
        self._thread.join(timeout)

    def report(self) -> RunReport:
        settling = self._settling
        return RunReport(
            activation=self.desired.activation,
            epoch=self.desired.epoch,
            setting=self.desired.setting,
            state=self.state,
            handled=settling.handled,
            failed=settling.failed,
            temporary=settling.temporary,
            restarts=self._restarts,
            in_progress=self._holding,
            connected=self._connected,
            counts=told_counts(settling.counting.counts),
            problems=self.problems,
            blocked=self._settling.ordered.blocked,
            repeats=settling.guard.repeats,
        )

    # -- the run's thread ------------------------------------------------------------------------------------

    def _main(self) -> None:
        try:
            self._live()
        except Exception as error:
            # A mistake of ours. The journal stays: what was begun is found in it when the run is started
            # anew.
            self._log.exception("run failed")
            self.problems = (reasons.CRASHED(type=type(error).__name__, text=str(error)),)
            self.state, self.crashed = RunState.FAILED, True
        finally:
            self._connected, self._holding = False, 0
            self._inbox.close()

    def _live(self) -> None:
        desired = self.desired
        # What the run begins with, before it takes a message: whatever follows is compared with it after a
        # kill.
        self._around.ledger.note(self._settling.progress(self._restarts))
        about = {"run": dump(self._record_run), "queue": desired.queue, "destination": desired.destination}
        about["masked"] = list(desired.masked_properties)
        journal = Journal.create(self.journal_path, about, SLOTS_PER_CHILD * desired.concurrency)
        pool = Pool(desired.concurrency, journal, self._job(), limit_seconds(desired), self._inbox.descriptor)
        pool.restarts = self._restarts
        departures = Departures(self._around.publisher, self._inbox.put, self._log)
        consuming = Consuming(
            desired,
            self._settling,
            journal,
            pool,
            self._around.spool,
            self._inbox,
            lambda: self._around.connect(self.desired, self._inbox),
            RunActs(pool, journal, departures, self._elsewhere),
            self._pending,
            self._log,
        )
        consuming.write_totals()
        try:
            self._work(consuming, pool)
        finally:
            try:
                consuming.end_open()
            finally:
                consuming.close_link()
            pool.close()
            departures.close()
            left = bool(self._pending)
            consuming.write_totals()
            journal.close()
        self._end(left)

    def _elsewhere(self, asked: AgentQuestion) -> None:
        self._around.elsewhere(asked.question, lambda reply: self._inbox.put(Told(asked, reply)))

    def _job(self) -> bytes:
        desired = self.desired
        return json_frame(
            JOB,
            {
                "agent": desired.agent,
                "setting": desired.setting,
                "activation": str(desired.activation),
                "server": self._around.server,
                "destination": desired.destination,
                "parameters": dump(desired.parameters),
                "modules": list(self._around.modules),
                "isolate": desired.isolate,
                "memory_bytes": desired.child_memory_mb * 1024 * 1024,
                "log_level": self._around.log_level,
                "acknowledgement_property": desired.acknowledgement_property,
            },
        )

    def _work(self, consuming: Consuming, pool: Pool) -> None:
        def answer(wish: Wish) -> None:
            if isinstance(wish, Change):
                self._settling.change(wish.desired)
                consuming.allowance.limit = wish.desired.limit_messages
                pool.limit_seconds = limit_seconds(wish.desired)
            elif self._stop is None:
                self._begin_stop(wish, consuming)
            else:
                self._stop = Stop(self._stop.close or wish.close, self._stop.reason or wish.reason)

        forced = False
        while not (consuming.stopping and consuming.drained):
            if consuming.finished and self._stop is None:
                self._begin_stop(Stop(True, LIMIT), consuming)
                continue
            consuming.step(answer)
            self._heed_breaker(consuming)
            self._show(consuming, pool)
            now = time.monotonic()
            if now > self._deadline and not forced:
                forced = True
                self._log.warning("grace period over: child processes are killed", in_progress=pool.holding)
                consuming.force()
            if now > self._deadline + _COMMIT_SECONDS:
                return

    def _begin_stop(self, stop: Stop, consuming: Consuming) -> None:
        self.stopping = True
        self._stop = stop
        self._deadline = min(self._deadline, time.monotonic() + self.desired.grace_seconds)
        self._log.info("run stops", reason=stop.reason)
        consuming.begin_stop()

    def _heed_breaker(self, consuming: Consuming) -> None:
        """After a trip the run ends as after a stop, whatever else it is told meanwhile."""
        reason = self._settling.counting.reason
        if reason and not self._tripped:
            self._tripped = reason
            self._log.error("breaker tripped", reason=reason, counts=asdict(self._settling.counting.counts))
            self._begin_stop(Stop(True, reason), consuming)
        if reason and not self._told and not self._pending:
            self._told = True
            self._around.report_now()

    def _show(self, consuming: Consuming, pool: Pool) -> None:
        self._connected, self._holding, self._restarts = consuming.connected, pool.holding, pool.restarts
        self.problems = consuming.problems
        if self._tripped:
            self.state = RunState.INTERRUPTED
        elif consuming.stopping:
            self._failed = self._failed or self.state is RunState.FAILED
            self.state = RunState.DRAINING
        elif pool.problem and not pool.ready:
            self.state = RunState.FAILED
        elif pool.ready and consuming.connected:
            self.state = RunState.RUNNING
        elif self.state is RunState.FAILED:
            self.state = RunState.STARTING

    def _end(self, left: bool) -> None:
        """Totals and counts to the disk, the closing record last. Killed before it: the host finds the run
        without one at its next start. `left`: endings that could not be stored; the journal is kept for
        them."""
        if left:
            self.crashed, self.problems = True, (reasons.ENDINGS_NOT_STORED(),)
            return
        progress = self._settling.progress(self._restarts)
        self._around.ledger.note(progress)
        closes = self._stop is not None and self._stop.close
        # Without a closing record it is still wanted: it goes on after a restart.
        self.state = self._last_state() if closes else RunState.STARTING
        if self._stop is not None and closes:
            close_run(self._around, self._record_run, self.key, self.state)
            self._around.report_now()
        # Last: it tells a start of this container that a standalone agent had ended.
        self.journal_path.unlink()
        self._log.info("run ended", **asdict(progress.totals))

    def _last_state(self) -> RunState:
        if self._tripped:
            return RunState.INTERRUPTED
        return RunState.FAILED if self._failed else RunState.FINISHED
