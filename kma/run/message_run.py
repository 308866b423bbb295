"""One run in a thread of its own, from the first child process to the closing record."""

import threading
import time
from dataclasses import asdict

from contract import reasons
from contract.messages import Answer, DesiredRun, Mode, RunReport
from contract.reasons import Reason
from contract.records import RecordRun, RunState
from contract.wire import dump
from kma.children.pool import SLOTS_PER_CHILD, ChildPool
from kma.delivery.breaker import first_carried, reported_counts
from kma.delivery.message_identity import KnownAttempts
from kma.delivery.outbox import Outbox
from kma.delivery.settlement import DeliverySettler
from kma.handling.frames import JOB, json_frame
from kma.logs import logger
from kma.run.commit import PendingEffects, RunActs
from kma.run.consumer import ConsumerLoop, HostRequest
from kma.run.inbox import Change, RemoteReply, RunInbox, Stop
from kma.run.services import ContainerServices, close_run
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


class MessageRun:
    """Start it once; `stop` and `change` it from any thread; it has ended when it is not `alive`."""

    def __init__(self, desired: DesiredRun, agent_version: str, services: ContainerServices) -> None:
        self.desired = desired
        self.key = run_key(desired.activation, desired.epoch)
        self.state = RunState.STARTING
        self.problems: tuple[Reason, ...] = ()
        self.crashed = False
        self.stopping = False
        self.journal_path = (
            services.journals / f"{desired.activation}-{desired.epoch}-{time.time_ns()}.journal"
        )
        self._services = services
        self._record_run = RecordRun(
            desired.setting, desired.activation, desired.epoch, services.server, desired.agent, agent_version
        )
        stored = services.ledger.open_run(self.key, {"run": dump(self._record_run)})
        self._settler = DeliverySettler(
            self._record_run,
            desired,
            stored.totals,
            first_carried(services.ledger.carried(desired.setting), desired),
            KnownAttempts(services.spool.attempts(desired.setting)),
            services.spool.handled_keys,
        )
        self._restarts = stored.totals.restarts
        self._holding = 0
        self._connected = False
        self._failed = False
        self._tripped = ""
        self._told = False
        self._log = logger(
            activation=str(desired.activation), setting=desired.setting, server=services.server
        )
        self._pending = PendingEffects(self._settler, services.spool, self._log)
        self._inbox = RunInbox()
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
        settler = self._settler
        return RunReport(
            activation=self.desired.activation,
            epoch=self.desired.epoch,
            setting=self.desired.setting,
            state=self.state,
            handled=settler.handled,
            failed=settler.failed,
            temporary=settler.temporary,
            restarts=self._restarts,
            in_progress=self._holding,
            connected=self._connected,
            counts=reported_counts(settler.counting.counts),
            problems=self.problems,
            blocked=self._settler.ordered.blocked,
            repeats=settler.guard.repeats,
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
        self._services.ledger.note(self._settler.progress(self._restarts))
        about = {"run": dump(self._record_run), "queue": desired.queue, "destination": desired.destination}
        about["masked"] = list(desired.masked_properties)
        journal = Journal.create(self.journal_path, about, SLOTS_PER_CHILD * desired.concurrency)
        pool = ChildPool(
            desired.concurrency, journal, self._job(), limit_seconds(desired), self._inbox.descriptor
        )
        pool.restarts = self._restarts
        outbox = Outbox(self._services.publisher, self._inbox.put, self._log)
        loop = ConsumerLoop(
            desired,
            self._settler,
            journal,
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
            left = bool(self._pending)
            loop.write_totals()
            journal.close()
        self._end(left)

    def _elsewhere(self, asked: AgentQuestion) -> None:
        self._services.elsewhere(asked.question, lambda reply: self._inbox.put(RemoteReply(asked, reply)))

    def _job(self) -> bytes:
        desired = self.desired
        return json_frame(
            JOB,
            {
                "agent": desired.agent,
                "setting": desired.setting,
                "activation": str(desired.activation),
                "server": self._services.server,
                "destination": desired.destination,
                "parameters": dump(desired.parameters),
                "modules": list(self._services.modules),
                "isolate": desired.isolate,
                "memory_bytes": desired.child_memory_mb * 1024 * 1024,
                "log_level": self._services.log_level,
                "acknowledgement_property": desired.acknowledgement_property,
            },
        )

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
                self._log.warning("grace period over: child processes are killed", in_progress=pool.holding)
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

    def _end(self, left: bool) -> None:
        """Totals and counts to the disk, the closing record last. Killed before it: the host finds the run
        without one at its next start. `left`: endings that could not be stored; the journal is kept for
        them."""
        if left:
            self.crashed, self.problems = True, (reasons.ENDINGS_NOT_STORED(),)
            return
        progress = self._settler.progress(self._restarts)
        self._services.ledger.note(progress)
        closes = self._stop is not None and self._stop.close
        # Without a closing record it is still wanted: it goes on after a restart.
        self.state = self._last_state() if closes else RunState.STARTING
        if self._stop is not None and closes:
            close_run(self._services, self._record_run, self.key, self.state)
            self._services.report_now()
        # Last: it tells a start of this container that a standalone agent had ended.
        self.journal_path.unlink()
        self._log.info("run ended", **asdict(progress.totals))

    def _last_state(self) -> RunState:
        if self._tripped:
            return RunState.INTERRUPTED
        return RunState.FAILED if self._failed else RunState.FINISHED
