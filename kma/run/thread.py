"""What every run is, a thread of its own from its first process to the closing record, and what all runs of a
container share.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

from broker.port import BrokerUnavailable, Consumer, ConsumerEvents, Publisher
from contract import reasons
from contract.messages import Answer, DesiredRun, RunReport
from contract.reasons import Reason
from contract.records import RecordRun, RunState
from contract.wire import dump
from kma.acknowledgement.remote import AnswerRemotely, without_ma
from kma.delivery.breaker import final_counts, first_carried, reported_counts
from kma.delivery.ending_records import closing
from kma.delivery.message_identity import KnownAttempts
from kma.delivery.settlement import DeliverySettler
from kma.delivery.trace import Trace
from kma.handling.frames import JOB, json_frame
from kma.logs import logger
from kma.run.commit import PendingEffects
from kma.run.inbox import Change, RunInbox, Stop
from kma.run.minutes import TellDurations, to_nobody
from kma.spool.ledger import Ledger, run_key
from kma.spool.records import New, Spool

Connect = Callable[[DesiredRun, ConsumerEvents], Consumer]


def no_publisher() -> Publisher:
    raise BrokerUnavailable("this container is not connected to a broker")


class Children(NamedTuple):
    """Processes of a run that work, or can, and the memory of all, in bytes."""

    ready: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class ContainerServices:
    """What all runs of one container share. `report_now`: a record that must not wait for its turn was
    stored. `publisher` is for what standalone agents send, and message agents beside a transaction;
    `elsewhere` passes answers to deliveries of other runs to the MA."""

    server: str
    spool: Spool
    ledger: Ledger
    journals: Path
    modules: tuple[str, ...]
    connect: Connect
    log_level: str = "INFO"
    report_now: Callable[[], None] = lambda: None
    publisher: Callable[[], Publisher] = no_publisher
    elsewhere: AnswerRemotely = without_ma
    trace: Trace | None = None
    durations: TellDurations = to_nobody


def close_run(services: ContainerServices, run: RecordRun, key: str, state: RunState) -> None:
    """The closing record, once. Every other record of the run is in the spool before it."""
    stored = services.ledger.run(key)
    assert stored is not None
    counts = final_counts(services.ledger.carried(run.setting), run)
    record = closing(
        run,
        stored.totals,
        records=stored.records,
        state=state,
        at=datetime.now(UTC),
        counts=counts,
    )
    services.spool.close_run(New(key, record, uuid4()))


class RunThread:
    """Start it once; `stop` and `change` it from any thread; it has ended when it is not `alive`."""

    def __init__(self, desired: DesiredRun, agent_version: str, services: ContainerServices) -> None:
        self.desired = desired
        self.key = run_key(desired.activation, desired.epoch)
        self.state = RunState.STARTING
        self.problems: tuple[Reason, ...] = ()
        self.crashed = False
        self.stopping = False
        self.children = Children()
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
        self._settler.trace = services.trace
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

    def heard_from_ma(self, sent_ns: int) -> None:
        """The MA has answered a heartbeat that was sent at this instant (`boottime_ns` of the lease)."""

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
            self._connected, self._holding, self.children = False, 0, Children()
            self._inbox.close()

    def _live(self) -> None:
        """All of it, in its thread; ends with `_end`."""
        raise NotImplementedError

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
