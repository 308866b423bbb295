"""One cell on a broker: a setting with one message, a place for what the agent sends, and what became of
both."""

from pathlib import Path
from typing import Any
from uuid import uuid4

from broker.management.waiting_messages import deliver_all_now
from broker.port import Settle
from contract.messages import DesiredRun, Mode
from contract.outcomes import Breaker
from contract.records import BreakerCounts
from tests.broker.houses import House
from tests.kma.cells.table import Cell, Event, Where
from tests.kma.fakes import SAMPLES, eventually
from tests.kma.queues import of, publish, script

KINDS = ("protocol", "recovered", "acknowledgement_ended", "closing")
MODULES = ("tests.kma.cells.agents", *SAMPLES)
ATTEMPTS = 2
MINUTE = 60_000  # ms: what failed stays where it is, until it is asked for
LIMIT = 0.4  # seconds
# What the breaker had counted before, and has afterwards.
BEFORE = BreakerCounts("ValueError", 1, 1)
AFTER = {Breaker.RESET: 0, Breaker.IGNORE: 1, Breaker.COUNT: 2}

SECRET = "5e" * 32

WAIT, COMMIT = {"do": "wait"}, {"do": "acknowledge"}
STEPS: dict[Event, dict[str, Any]] = {
    Event.ROLLS_BACK: {"do": "acknowledge", "action": "ROLLBACK"},
    Event.RAISES: {"do": "raise", "type": "KeyError"},
    Event.RAISES_LAST: {"do": "raise", "type": "KeyError"},
    Event.TEMPORARY: {"do": "temporary"},
    Event.INVALID: {"do": "invalid"},
    Event.CHILD_DIES: {"do": "exit", "code": 3},
    Event.OVER_LIMIT: WAIT,
    Event.SEND_REFUSED: {"do": "send", "destination": "nobody.made.this"},
    Event.STOPPED: WAIT,
    Event.CONNECTION_LOST: WAIT,
    Event.KMA_KILLED: WAIT,
    Event.BROKER_KILLED: WAIT,
}
# Those in which an agent of the mode CLIENT answers before it returns or raises.
COMMITS = (
    *(Event.RETURNS, Event.RETURNS_AGAIN, Event.SEND_REFUSED, Event.RAISES_AFTER_COMMIT),
    *(Event.CONNECTION_LOST, Event.BROKER_KILLED),
    *(Event.KMA_KILLED_BEFORE, Event.KMA_KILLED_AFTER, Event.BROKER_KILLED_BEFORE, Event.BROKER_KILLED_AFTER),
)


class Trial:
    def __init__(self, house: House, cell: Cell, folder: Path) -> None:
        """The message is published, and has failed before where the event says so."""
        self.house = house
        self.cell = cell
        self.truth, self.gate = folder / "truth", folder / "gate"
        self.setting = house.setting(attempts=ATTEMPTS, delay=MINUTE)
        self.target = house.setting()
        self.identity = f"ID:{self.setting.key}"
        publish(house, self.setting, script(self._steps(), self.identity))
        if cell.event in (Event.RETURNS_AGAIN, Event.RAISES_LAST):
            self._fail_once()

    def _steps(self) -> list[dict[str, Any]]:
        event, way = self.cell.event, self.cell.way
        steps: list[dict[str, Any]]
        steps = [{"do": "send", "destination": self.target.address, "body": "sent"}] if way.sends else []
        steps.append(STEPS.get(event, {"do": "ok"}))
        if way.mode is Mode.CLIENT and event in COMMITS:
            steps.append(COMMIT)
        if event is Event.RAISES_AFTER_COMMIT:
            steps.append(STEPS[Event.RAISES])
        return steps

    def _fail_once(self) -> None:
        consumer, owner = self.house.consume(self.setting)
        consumer.settle([(owner.got().tag, Settle.FAIL)])
        consumer.stop()
        eventually(lambda: self.house.figures(self.setting).scheduled == 1, "a failed attempt")
        deliver_all_now(self.house.management, self.setting.key)

    @property
    def desired(self) -> DesiredRun:
        limit = LIMIT if self.cell.event is Event.OVER_LIMIT else 0.0
        transacted = self.cell.way.mode is Mode.TRANSACTED
        answered_in_time = LIMIT if self.cell.event is Event.NO_ANSWER else 0.0
        return of(
            self.setting,
            activation=uuid4(),
            agent="test.cell",
            mode=self.cell.way.mode,
            max_attempts=ATTEMPTS,
            limit_messages=1,
            grace_seconds=0.3,
            carried_counts=BEFORE,
            handling_timeout_seconds=0.0 if transacted else limit,
            transaction_timeout_seconds=limit if transacted else 0.0,
            acknowledgement_secret=SECRET,
            acknowledgement_timeout_seconds=answered_in_time,
            parameters={"truth_file": str(self.truth), "gate": str(self.gate)},
        )

    @property
    def begun(self) -> bool:
        return self.truth.exists()

    # -- what became of it -----------------------------------------------------------------------------------

    def judge_message(self) -> None:
        """No run may be at work."""
        ends = {end.where: end for end in self.cell.row.ends}
        eventually(
            lambda: self._where() in ends, f"end as {[each.value for each in ends]}: {self._figures()}"
        )
        where = self._where()
        assert where is not None
        end = ends[where]
        assert self.house.figures(self.target).messages == (1 if end.sent and self.cell.way.sends else 0), (
            "sent"
        )
        if where in (Where.AT_ONCE, Where.DELAYED):
            assert self._count(where) in end.counts

    def judge_records(self, records: dict[str, list[dict[str, Any]]]) -> None:
        """`records`: contents by kind, of this run and all that it will ever tell."""
        told = [f"{one['outcome']}: {one['exception_type']}" for one in records["protocol"]]
        told += ["recovered"] * len(records["recovered"])
        told += [f"answer {one['state']}" for one in records["acknowledgement_ended"]]
        assert sorted(told) == sorted(self.cell.row.records), f"told {told}"
        (closing,) = records["closing"]
        if self.cell.row.breaker is not None:
            counted = closing["counts"]["any"]
            assert counted == AFTER[self.cell.row.breaker], f"the breaker counted {counted}"

    def _figures(self) -> tuple[Any, int]:
        return self.house.figures(self.setting), len(self.house.dead(self.setting))

    def _where(self) -> Where | None:
        """None while the broker is at it."""
        figures, dead = self._figures()
        if figures.delivering:
            return None
        found = {
            (0, 0, 0): Where.GONE,
            (1, 0, 0): Where.AT_ONCE,
            (1, 1, 0): Where.DELAYED,
            (0, 0, 1): Where.DEAD,
        }  # fmt: skip
        return found.get((figures.messages, figures.scheduled, dead))

    def _count(self, where: Where) -> int:
        if where is Where.DELAYED:
            deliver_all_now(self.house.management, self.setting.key)
        consumer, owner = self.house.consume(self.setting)
        try:
            got = owner.got()
        finally:
            consumer.stop()
        assert got.message.message_id is not None and got.message.message_id.value == self.identity
        return got.count
