"""Desired runs -> running consumers. Its step is called often, does what can be done now and never waits."""

import sqlite3
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from contract import reasons
from contract.acknowledgements import IdParts, read_id
from contract.messages import AgentKind, Answer, DesiredRun, DesiredState, RunReport
from contract.reasons import Reason
from contract.records import BreakerCounts, RecordRun, RunState
from contract.wire import load
from kma.acknowledgement.reporting import end_unknown
from kma.agent_discovery import OfferedAgents
from kma.delivery.breaker import final_counts
from kma.host.desired_state import changed, needs_restart
from kma.host.recovery import recover
from kma.logs import logger
from kma.run.message_run import MessageRun
from kma.run.thread import Children, ContainerServices, RunThread, close_run
from kma.spool.journal import Totals
from kma.spool.ledger import StoredRun, run_key
from kma.standalone.run import StandaloneRun

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
_KEEP_REPORTS = 60.0  # seconds that an ended run is still reported
_LOOK_AGAIN = 30.0  # seconds before the modules are looked at again for an agent that is missing


@dataclass(slots=True)
class Crash:
    """A run that ended by a mistake of ours is started again with growing pauses."""

    pause: float
    again_at: float
    problems: tuple[Reason, ...]


class RunSupervisor:
    """One thread. `look` answers which agents this server offers."""

    def __init__(self, services: ContainerServices, look: Callable[[], OfferedAgents]) -> None:
        self._services = services
        self._look = look
        self._wanted: dict[str, DesiredRun] = {}
        self._told = False  # before the first desired state nothing is known of what is not wanted
        self._ending = False
        self._answered_ns = 0
        self._runs: dict[str, RunThread] = {}
        self._crashes: dict[str, Crash] = {}
        self._unfit: dict[str, Reason] = {}
        self._reported: dict[str, tuple[float, RunReport]] = {}
        self._looked_at = time.monotonic()
        self._log = logger(server=services.server)
        self.offer = look()

    def want(self, desired: DesiredState) -> None:
        """The MA's wish from now on. Of two epochs of one activation the higher counts."""
        newest: dict[str, DesiredRun] = {}
        for run in desired.runs:
            known = newest.get(str(run.activation))
            if known is None or known.epoch < run.epoch:
                newest[str(run.activation)] = run
        self._wanted = {run_key(run.activation, run.epoch): run for run in newest.values()}
        self._unfit = {}
        self._told = True

    def answered(self, sent_ns: int) -> None:
        """The MA has answered a heartbeat sent at this instant (`boottime_ns` of the lease), and what it
        wants has been told before (`want`): the leases of the runs go on from there."""
        self._answered_ns = sent_ns
        for run in self._runs.values():
            run.heard_from_ma(sent_ns)

    def pass_on(self, answers: Iterable[Answer]) -> None:
        """Answers to deliveries of the mode CLIENT, to their runs. One whose run is not alive has come too
        late."""
        for answer in answers:
            try:
                parts = read_id(answer.acknowledgement)
            except ValueError as error:
                self._log.error(
                    "answer for an unknown delivery ignored",
                    acknowledgement=answer.acknowledgement,
                    problem=str(error),
                )
                continue
            run = self._runs.get(run_key(parts.activation, parts.epoch))
            if run is not None and run.alive:
                run.pass_on(answer)
            else:
                self._too_late(answer.acknowledgement, parts)

    def _too_late(self, acknowledgement: str, parts: IdParts) -> None:
        try:
            end_unknown(self._services.spool, self._services.ledger, acknowledgement, parts)
        except sqlite3.Error as error:
            self._log.error(
                "outcome of a delivery cannot be stored", error=str(error)
            )  # the MA will ask again

    def step(self) -> None:
        self._reap_ended_runs()
        if self._ending:
            return
        self._close_interrupted()
        if not self._told:
            return
        for key, run in self._runs.items():
            self._adjust(key, run)
        busy = {run.desired.setting for run in self._runs.values()}
        for key, desired in self._wanted.items():
            # One run of a setting at a time: a new epoch begins when the old one has given everything back.
            if key not in self._runs and desired.setting not in busy and self._may_start(key, desired):
                self._start(key, desired)
                busy.add(desired.setting)
        self._close_forgotten()

    def stop_all(self, reason: str) -> None:
        """The container ends: the runs stay wanted, so they end without a closing record."""
        self._ending = True
        for run in self._runs.values():
            run.stop(close=False, reason=reason)

    @property
    def alive(self) -> bool:
        return any(run.alive for run in self._runs.values())

    def grace_seconds(self) -> float:
        return max((run.desired.grace_seconds for run in self._runs.values()), default=0.0)

    def reports(self) -> tuple[RunReport, ...]:
        """Every run that is alive or wanted, and those that have just ended."""
        found = {key: self._waiting_report(key, desired) for key, desired in self._wanted.items()}
        # What ended here and is still wanted has said its last word; only what will begin again waits.
        found |= {
            key: told for key, (_, told) in self._reported.items() if key not in found or self._is_over(key)
        }
        found |= {key: run.report() for key, run in self._runs.items()}
        return tuple(found.values())

    def children(self) -> dict[str, Children]:
        """Processes of the runs that are alive, by their key."""
        return {key: run.children for key, run in self._runs.items()}

    # -- steps -----------------------------------------------------------------------------------------------

    def _reap_ended_runs(self) -> None:
        now = time.monotonic()
        for key, run in list(self._runs.items()):
            if run.alive:
                continue
            del self._runs[key]
            self._reported[key] = (now, run.report())
            if run.crashed:
                self._recover(key, run, now)
            else:
                self._crashes.pop(key, None)
        for key, (at, _) in list(self._reported.items()):
            if now - at > _KEEP_REPORTS:
                del self._reported[key]

    def _recover(self, key: str, run: RunThread, now: float) -> None:
        before = self._crashes.get(key)
        pause = min(before.pause * 2, LONGEST_PAUSE) if before else FIRST_PAUSE
        self._crashes[key] = Crash(pause, now + pause, run.problems)
        if run.journal_path.exists():
            recover(run.journal_path, self._services.spool, self._services.ledger)

    def _adjust(self, key: str, run: RunThread) -> None:
        desired = self._wanted.get(key)
        if desired is None:
            if not run.stopping:
                run.stop(close=True, reason="no longer assigned")
        elif desired != run.desired and not run.stopping:
            if needs_restart(run.desired, desired):
                run.stop(close=False, reason="setting changed")
            elif (live := changed(run.desired, desired)) != run.desired:
                run.change(live)

    def _may_start(self, key: str, desired: DesiredRun) -> bool:
        crash = self._crashes.get(key)
        if crash is not None and time.monotonic() < crash.again_at:
            return False
        stored = self._services.ledger.run(key)
        if stored is not None and (stored.closed or stored.interrupted):
            return False  # it ended here: the MA has to want a new epoch
        problem = self._misfit(desired)
        if problem:
            if self._unfit.get(key) != problem:
                self._log.error("run cannot start", setting=desired.setting, problem=str(problem))
            self._unfit[key] = problem
            return False
        self._unfit.pop(key, None)
        return True

    def _misfit(self, desired: DesiredRun) -> Reason | None:
        agent = next((one for one in self.offer.agents if one.name == desired.agent), None)
        if agent is None and time.monotonic() - self._looked_at > _LOOK_AGAIN:
            self._looked_at = time.monotonic()
            self.offer = self._look()
            agent = next((one for one in self.offer.agents if one.name == desired.agent), None)
        if agent is None:
            names = ", ".join(one.name for one in self.offer.agents) or "none"
            return reasons.UNKNOWN_AGENT(agent=desired.agent, offered=names)
        if agent.kind != desired.kind.value:
            return reasons.OTHER_KIND(agent=desired.agent, kind=agent.kind, wanted=desired.kind.value)
        return None if desired.concurrency > 0 else reasons.NO_CONCURRENCY()

    def _start(self, key: str, desired: DesiredRun) -> None:
        self._log.info(
            "run starts", setting=desired.setting, activation=str(desired.activation), epoch=desired.epoch
        )
        kind = StandaloneRun if desired.kind is AgentKind.STANDALONE else MessageRun
        run = kind(desired, self.offer.version_of(desired.agent), self._services)
        run.heard_from_ma(self._answered_ns)
        self._runs[key] = run
        run.start()

    def _close_interrupted(self) -> None:
        """Runs whose breaker tripped and that did not come to their closing record: this process was killed,
        or the disk failed. The trip was stored with its cause, so they are over, though the MA may still want
        them."""
        for stored in self._services.ledger.unclosed():
            if stored.interrupted and stored.run not in self._runs:
                self._close(stored, RunState.INTERRUPTED)

    def _close_forgotten(self) -> None:
        """Runs that ended while nobody was there to write their closing record: this process was killed, or
        the MA stopped wanting them while it was down."""
        for stored in self._services.ledger.unclosed():
            if stored.run not in self._runs and stored.run not in self._wanted:
                self._close(stored, RunState.FINISHED)

    def _close(self, stored: StoredRun, state: RunState) -> None:
        close_run(self._services, load(RecordRun, stored.about["run"]), stored.run, state)
        self._services.report_now()
        self._crashes.pop(stored.run, None)

    def _is_over(self, key: str) -> bool:
        stored = self._services.ledger.run(key)
        return stored is not None and stored.closed

    def _waiting_report(self, key: str, desired: DesiredRun) -> RunReport:
        crash = self._crashes.get(key)
        unfit = self._unfit.get(key)
        problems = (unfit,) if unfit is not None else crash.problems if crash else ()
        stored = self._services.ledger.run(key)
        totals = stored.totals if stored is not None else Totals()
        return RunReport(
            activation=desired.activation,
            epoch=desired.epoch,
            setting=desired.setting,
            state=_state_of(stored, bool(problems)),
            handled=totals.handled,
            failed=totals.failed,
            temporary=totals.temporary,
            restarts=totals.restarts,
            counts=final_counts(self._services.ledger.carried(desired.setting), desired) or BreakerCounts(),
            problems=problems,
        )


def _state_of(stored: StoredRun | None, problem: bool) -> RunState:
    """Of a wanted run that is not alive."""
    if stored is not None and stored.interrupted:
        return RunState.INTERRUPTED
    if stored is not None and stored.closed:
        return RunState.FINISHED
    return RunState.FAILED if problem else RunState.STARTING
