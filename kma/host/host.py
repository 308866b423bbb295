"""One server's container: owns the data folder, keeps what the MA wants running, tells it how things are.

Start order: lock the folder, turn unfinished starts into protocols, ask the MA, run what it wants; where it
does not answer, what it wanted last: while this server was down a person may have switched a setting off, or
given it another agent. Stop order: runs finish what is at hand, records are sent while the MA answers, the
folder is given free.
"""

import fcntl
import os
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

from broker.amqp.consumer import AmqpConsumer
from broker.amqp.publisher import AmqpPublisher
from broker.port import Consumer, ConsumerEvents
from contract import __version__, reasons
from contract.messages import DesiredRun, DesiredState, Heartbeat, HeartbeatReply
from contract.names import connection_name
from contract.reasons import Reason
from exposition import notify
from exposition.listener import Listener
from kma import agent_discovery
from kma.acknowledgement.remote import RemoteAnswers
from kma.host import desired_state
from kma.host.config import Config
from kma.host.metrics import HostMetrics, Told, listen
from kma.host.recovery import recover_all
from kma.host.reporter import Pause, Reporter
from kma.host.supervisor import RunSupervisor
from kma.host.tracing import span_sender
from kma.logs import logger
from kma.ma_client import Endpoint, MaClient, NotAllowed, Rejected, Unanswered
from kma.run.thread import Connect, ContainerServices
from kma.spool.file import SpoolFile
from kma.spool.ledger import Ledger
from kma.spool.records import Spool
from kma.standalone.lease import boottime_ns

_TICK = 0.2  # seconds between looks at the runs
_TELL = 1.0  # seconds between what is told to the metrics
_FORCED_SECONDS = 20.0  # beyond the longest grace period
# Seconds between heartbeats that fail: short enough that an MA which comes back does not take this server for
# lost.
_LONGEST_SILENCE = 5.0
_DRAIN_SECONDS = 5.0  # for the last records at a stop
_LAST_WORD_SECONDS = 2.0  # for a heartbeat that is under way when the stop begins, and for the last one


class FolderTaken(RuntimeError):
    """Another KMA works in this data folder. Operator: one server name and one folder per KMA; is an old one
    alive?"""


class Host:
    """`start`, then `stop`, each once. `poll_now` may be called from any thread at any time."""

    def __init__(self, config: Config, connect: Connect | None = None) -> None:
        self._config = config
        self._log = logger(server=config.server)
        self._boot = uuid4()
        self._lock = _locked(config.data)
        self._file = SpoolFile(config.data / "spool.sqlite3")
        self._spool = Spool(self._file, config.spool_bytes, config.keep_seconds)
        ledger = Ledger(self._file)
        journals = config.data / "journal"
        journals.mkdir(mode=0o700, exist_ok=True)
        died = recover_all(journals, self._spool, ledger)
        self._metrics = HostMetrics(config.server, ledger.totals(), died)
        endpoint = Endpoint(config.ma_url, config.server, config.token, config.ma_tls)
        self._answers = RemoteAnswers(lambda: MaClient(endpoint))
        self._spans = span_sender(config.trace_endpoint, config.server)
        services = ContainerServices(
            config.server,
            self._spool,
            ledger,
            journals,
            config.agents,
            connect or _connector(config),
            config.log_level,
            lambda: self._reporter.wake(),
            lambda: AmqpPublisher(config.account),
            self._answers.ask,
            self._spans.send if self._spans is not None else None,
            self._metrics.measured,
        )
        self._keeper = RunSupervisor(services, lambda: agent_discovery.inspect_modules(config.agents))
        self._client = MaClient(endpoint)
        self._report_client = MaClient(endpoint)
        self._reporter = Reporter(self._report_client, self._spool, config.server)
        self._desired_path = config.data / "desired.json"
        self._desired_version = ""
        self._desired_problem: Reason | None = None
        self._may_begin = False  # the MA was asked: what it wants is known, or it does not answer
        self._listener: Listener | None = None
        self._tell_at = 0.0
        self._answered_at: datetime | None = None
        self._pause = Pause(longest=_LONGEST_SILENCE)
        self._next_heartbeat = 0.0
        self._ma_problem = ""
        self._look = threading.Event()
        self._asked_to_poll = threading.Event()
        self._ending = threading.Event()
        self._asking = threading.Event()  # the host's thread waits for the MA
        self._thread = threading.Thread(target=self._main, name="host", daemon=True)

    def start(self) -> None:
        stored = desired_state.stored(self._desired_path, self._config.server)
        if stored is not None:
            self._take(stored)
        self._log.info(
            "KMA starts", agents=[agent.name for agent in self._keeper.offer.agents], boot=str(self._boot)
        )
        if self._config.metrics_address is not None:
            address, token = self._config.metrics_address, self._config.metrics_token
            self._listener = listen(address, token, self._metrics, lambda: datetime.now(UTC))
        self._reporter.start()
        self._thread.start()
        notify.tell("READY=1")

    def poll_now(self) -> None:
        """Ask the MA at once what it wants; where a heartbeat is under way another one follows it: that one
        may have been answered before the MA changed its mind."""
        self._asked_to_poll.set()
        self._look.set()

    def stop(self) -> None:
        """A site that swallows packets costs it _LAST_WORD_SECONDS, _DRAIN_SECONDS and _LAST_WORD_SECONDS at
        most."""
        notify.tell("STOPPING=1")
        self._ending.set()
        self._look.set()
        self._join()
        self._keeper.stop_all("KMA shutdown")
        deadline = time.monotonic() + self._keeper.grace_seconds() + _FORCED_SECONDS
        while self._keeper.alive and time.monotonic() < deadline:
            time.sleep(0.05)
        self._keeper.step()
        self._reporter.stop(drain_seconds=_DRAIN_SECONDS)
        if (
            not self._thread.is_alive()
        ):  # else the MA has not answered its heartbeat yet, nor will it this one
            self._client.hurry(_LAST_WORD_SECONDS)
            self._beat()
        if self._listener is not None:
            self._listener.stop()
        if self._spans is not None:
            self._spans.close()
        self._answers.close()
        self._client.close()
        self._report_client.close()
        self._file.close()
        self._lock_free()
        self._log.info("KMA stopped")

    def _join(self) -> None:
        """Until the host's thread has ended, or waits for the MA for too long: then it does no more to the
        runs."""
        deadline = time.monotonic() + _LAST_WORD_SECONDS
        while self._thread.is_alive() and not (self._asking.is_set() and time.monotonic() >= deadline):
            self._thread.join(0.05)

    # -- the host's thread -----------------------------------------------------------------------------------

    def _main(self) -> None:
        while not self._ending.is_set():
            try:
                self.step()
                notify.fed()
            except Exception:
                self._log.exception("host step failed; continuing")
            self._look.wait(_TICK)
            self._look.clear()

    def step(self) -> None:
        """Runs first: they must be seen to even while the MA lets us wait."""
        if self._may_begin:
            self._keeper.step()
        if self._listener is not None and time.monotonic() >= self._tell_at:
            self._tell_at = time.monotonic() + _TELL
            self._metrics.note(self._told())
        if self._asked_to_poll.is_set() or time.monotonic() >= self._next_heartbeat:
            self._asked_to_poll.clear()
            self._beat()

    def _told(self) -> Told:
        return Told(
            at=datetime.now(UTC),
            runs=self._keeper.reports(),
            children=self._keeper.children(),
            spool=self._spool.report(),
            problems=[problem.code for problem in self._problems()],
            ma_answers=not self._ma_problem and self._answered_at is not None,
            answered_at=self._answered_at,
        )

    def _beat(self) -> None:
        self._spool.try_again()
        sent_ns = boottime_ns()  # before it is sent: the MA heard of this server no earlier
        heartbeat = self._heartbeat()
        self._asking.set()
        try:
            reply = self._client.heartbeat(heartbeat)
        except (Unanswered, NotAllowed, Rejected) as error:
            if not self._ending.is_set():
                self._asking.clear()
            # A site that refuses this server is there, and one whose last wish is not stored has said it.
            if not isinstance(error, NotAllowed) and self._desired_problem is None:
                self._may_begin = True
            asked = error.after if isinstance(error, Unanswered) else None
            wait = self._pause.next(asked)
            self._next_heartbeat = time.monotonic() + max(self._config.heartbeat_seconds, wait)
            if str(error) != self._ma_problem:
                self._ma_problem = str(error)
                self._log.warning("no heartbeat", problem=self._ma_problem, next_seconds=round(wait, 1))
            return
        if self._ending.is_set():
            return  # the runs are another thread's by now
        self._asking.clear()
        if self._ma_problem:
            self._log.info("the MA answers again")
            self._reporter.wake()
        self._ma_problem = ""
        self._answered_at = datetime.now(UTC)
        self._pause.reset()
        self._next_heartbeat = time.monotonic() + self._config.heartbeat_seconds
        if reply.spool_stored_up_to is not None:
            self._reporter.send_again(reply.spool_stored_up_to, heartbeat.spool.after)
        self._obey(reply, sent_ns)

    def _obey(self, reply: HeartbeatReply, sent_ns: int) -> None:
        wish = reply.desired
        if wish is not None and wish.server != self._config.server:
            self._log.error("desired state of another server", other=wish.server)
            return
        if wish is not None:
            # On disk before it has an effect: after a kill this process knows what it had begun.
            if not self._store(wish):
                self._keeper.pass_on(reply.answers)
                return  # no lease goes on: its run may not be wanted any more
            self._take(wish)
        self._may_begin = True
        self._keeper.step()
        self._keeper.pass_on(reply.answers)
        # After the wish: a run that is not wanted any more must not begin because its lease goes on.
        self._keeper.answered(sent_ns)

    def _store(self, wish: DesiredState) -> bool:
        """The MA sends it again with each heartbeat until it is here."""
        before, self._desired_problem = self._desired_problem, None
        try:
            desired_state.store(self._desired_path, wish)
        except OSError as error:
            self._desired_problem = reasons.DESIRED_NOT_STORED(
                path=str(self._desired_path), detail=str(error)
            )
            if before != self._desired_problem:
                self._log.error("desired state cannot be stored", error=str(error))
        return not self._desired_problem

    def _take(self, state: DesiredState) -> None:
        self._desired_version = state.version
        self._keeper.want(state)

    def _heartbeat(self) -> Heartbeat:
        return Heartbeat(
            server=self._config.server,
            boot=self._boot,
            sent_at=datetime.now(UTC),
            kma_version=__version__,
            desired_version=self._desired_version,
            agents=self._keeper.offer.agents,
            runs=self._keeper.reports(),
            spool=self._spool.report(),
            problems=self._problems(),
        )

    def _problems(self) -> tuple[Reason, ...]:
        aside = self._spool.set_aside()
        refused = reasons.RECORDS_REFUSED(n=aside, path=f"{self._config.data}/spool.sqlite3")
        found = (
            *self._keeper.offer.problems,
            self._reporter.problem,
            self._reporter.slow_link,
            refused if aside else None,
            self._spool.problem,
            self._desired_problem,
        )
        return tuple(problem for problem in found if problem)

    def _lock_free(self) -> None:
        os.close(self._lock)


def _locked(folder: Path) -> int:
    """The lock ends with the process, however it ends. Children do not inherit it."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(file)
        raise FolderTaken(f"another KMA uses {folder}") from None
    return file


def _connector(config: Config) -> Callable[[DesiredRun, ConsumerEvents], Consumer]:
    def connect(run: DesiredRun, events: ConsumerEvents) -> Consumer:
        name = connection_name(config.server)
        return AmqpConsumer(config.account, run.destination, run.queue, events, name=name)

    return connect
