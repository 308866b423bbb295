"""A small world for the state machine of launch control: KMAs as they keep the contract, the MA's own
services.

A model KMA does what the wire asks of a real one: it goes on with the desired state that it has, never takes
a run up again that it gave up or closed, keeps its records in a spool until they are taken, and ends what
runs under a lease when the lease is over. Time is the world's own.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from agents.heartbeat.heartbeats import accept_heartbeat
from agents.liveness import LEASE_MARGIN_SECONDS, LEASE_SECONDS
from agents.models import Server
from contract.messages import (
    AgentKind,
    DesiredRun,
    DesiredState,
    Heartbeat,
    OfferedAgent,
    RecordBatch,
    RunReport,
    SpoolReport,
)
from contract.records import Content, RecordRun, RunState
from failures.intake.batch import accept_batch
from tests.web import reports

OFFERED = (OfferedAgent("demo.orders", "message"), OfferedAgent("demo.report", "standalone"))
# How long a process may take to end when its lease is over: a busy machine, a child deep in a system call.
DYING_SECONDS = LEASE_MARGIN_SECONDS - 1
Key = tuple[UUID, int]


def key_of(run: DesiredRun) -> Key:
    return run.activation, run.epoch


@dataclass
class Kma:
    """`states`: what became of each run that was ever wanted here. `unsent`: records that the MA has not
    taken."""

    name: str
    boot: UUID
    alive: bool = True
    frozen: bool = False
    cut: bool = False
    desired: DesiredState | None = None
    states: dict[Key, RunState] = field(default_factory=dict)
    records: dict[Key, int] = field(default_factory=dict)
    spool: reports.Spool = field(init=False)
    unsent: list[Content] = field(default_factory=list)
    leased_since: datetime | None = None

    def __post_init__(self) -> None:
        self.spool = reports.Spool(self.name)

    @property
    def acts(self) -> bool:
        return self.alive and not self.frozen

    @property
    def is_heard(self) -> bool:
        return self.acts and not self.cut

    def at_work(self, setting: str, now: datetime) -> list[Key]:
        """Runs of the setting whose agent works at this instant, also while nobody hears of it."""
        if not self.alive or self.desired is None:
            return []
        longest = timedelta(seconds=LEASE_SECONDS + DYING_SECONDS)
        leased = self.leased_since is not None and now < self.leased_since + longest
        return [
            key_of(run)
            for run in self.desired.runs
            if run.setting == setting
            and self.states.get(key_of(run)) is RunState.RUNNING
            and (leased or run.kind is not AgentKind.STANDALONE)
        ]

    # -- what it does ----------------------------------------------------------------------------------------

    def beat(self, now: datetime, *, answered: bool = True) -> None:
        """One heartbeat that reaches the MA; `answered`: its answer comes back too."""
        heartbeat = Heartbeat(
            server=self.name,
            boot=self.boot,
            sent_at=now,
            kma_version="1",
            desired_version=self.desired.version if self.desired else "",
            agents=OFFERED,
            runs=tuple(self._reports()),
            spool=SpoolReport(rows=len(self.unsent)),
        )
        reply = accept_heartbeat(Server.objects.get(name=self.name), heartbeat, now)
        if answered:
            self.leased_since = now
            if reply.desired is not None:
                self._obey(reply.desired)

    def send(self, now: datetime, *, twice: bool = False) -> None:
        """The whole spool; `twice`: the first answer was lost."""
        if not self.unsent:
            return
        batch: RecordBatch = self.spool.batch(*self.unsent)
        self.unsent = []
        for _ in range(2 if twice else 1):
            accept_batch(Server.objects.get(name=self.name), batch, now)

    def give_up(self, key: Key, now: datetime) -> None:
        """Its breaker trips: the interruption and the closing record are in the spool together."""
        run = self._record_run(key)
        self.states[key] = RunState.INTERRUPTED
        self._keep(key, reports.interruption(run, occurred_at=now))
        self._close(key, RunState.INTERRUPTED)

    def die(self) -> None:
        """What is on its disk stays: desired state, spool and ledger."""
        self.alive, self.frozen, self.leased_since = False, False, None

    # -- inside ----------------------------------------------------------------------------------------------

    def _obey(self, desired: DesiredState) -> None:
        wanted = {key_of(run) for run in desired.runs}
        for key, state in list(self.states.items()):
            if state is RunState.RUNNING and key not in wanted:
                self.states[key] = RunState.FINISHED
                self._close(key, RunState.FINISHED)
        self.desired = DesiredState(desired.server, desired.version, desired.runs)
        for key in wanted - self.states.keys():
            self.states[key] = RunState.RUNNING

    def _reports(self) -> list[RunReport]:
        runs = self.desired.runs if self.desired else ()
        found = {key_of(run): run for run in runs}
        return [
            RunReport(run.activation, run.epoch, run.setting, self.states[key], connected=True)
            for key, run in found.items()
            if key in self.states
        ]

    def _keep(self, key: Key, content: Content) -> None:
        self.unsent.append(content)
        self.records[key] = self.records.get(key, 0) + 1

    def _close(self, key: Key, state: RunState) -> None:
        self.unsent.append(reports.closing(self._record_run(key), self.records.get(key, 0), state=state))

    def _record_run(self, key: Key) -> RecordRun:
        assert self.desired is not None
        run = next(run for run in self.desired.runs if key_of(run) == key)
        return RecordRun(run.setting, run.activation, run.epoch, self.name, run.agent, "1")
