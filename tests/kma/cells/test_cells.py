"""Every cell in which nobody is killed, one by one."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from broker.amqp_adapter import AmqpConsumer
from broker.port import Account, Consumer, ConsumerEvents
from contract.messages import DesiredRun
from deploy.config import LOOPBACK
from tests.acceptance.launching.proxy import Wire
from tests.broker.houses import RealHouse
from tests.kma.cells.table import BROKER_KILLS, KMA_KILLS, WAYS, Cell, Event, cells, possible
from tests.kma.cells.trial import MODULES, Trial
from tests.kma.fakes import Stage, eventually

QUIET = [event for event in Event if event not in KMA_KILLS + BROKER_KILLS]


def test_every_event_is_told_of_every_way_once() -> None:
    told = [(cell.event, cell.way) for cell in cells()]
    wanted = {(event, way) for event in Event for way in WAYS if possible(event, way)}
    assert len(told) == len(set(told)) and set(told) == wanted


def linked(account: Account) -> Callable[[DesiredRun, ConsumerEvents], Consumer]:
    def connect(run: DesiredRun, events: ConsumerEvents) -> Consumer:
        return AmqpConsumer(account, run.destination, run.queue, events)

    return connect


@pytest.fixture
def wire(house: RealHouse) -> Iterator[Wire]:
    made = Wire(house.service.ports.amqp)
    yield made
    made.close()


@pytest.mark.parametrize("cell", list(cells(*QUIET)), ids=str)
def test_cell(house: RealHouse, wire: Wire, tmp_path: Path, cell: Cell) -> None:
    trial = Trial(house, cell, tmp_path)
    account = replace(house.kma, url=f"amqp://{LOOPBACK}:{wire.port}")
    one = Stage(tmp_path, [], modules=MODULES, connect=linked(account))
    one.run = type(one.run)(trial.desired, "1", one.around)
    one.run.start()
    try:
        _happen(one, trial, wire)
        one.run.join(30)
        assert not one.run.alive
        trial.judge_message()
        trial.judge_records({kind: one.records(kind) for kind in ("protocol", "recovered", "closing")})
    finally:
        trial.gate.touch()
        one.end()


def _happen(one: Stage, trial: Trial, wire: Wire) -> None:
    """What does not happen by the message's own script. A run ends by itself when its message has been handled."""
    if trial.cell.event is Event.STOPPED:
        eventually(lambda: trial.begun, "a start")
        one.run.stop(close=True, reason="test")
    elif trial.cell.event is Event.CONNECTION_LOST:
        eventually(lambda: trial.begun, "a start")
        wire.close()
        eventually(lambda: not one.run.report().connected, "the loss")
        trial.gate.touch()
