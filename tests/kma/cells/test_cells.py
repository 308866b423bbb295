"""Every cell in which nobody is killed, one by one."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from broker.amqp.consumer import AmqpConsumer
from broker.amqp.publisher import AmqpPublisher
from broker.port import Account, Consumer, ConsumerEvents
from contract.acknowledgements import Action
from contract.messages import Answer, DesiredRun
from deploy.config import LOOPBACK
from tests.broker.houses import RealHouse
from tests.kma.cells.table import BROKER_KILLS, KMA_KILLS, OPEN, WAYS, Cell, Event, cells, possible
from tests.kma.cells.trial import KINDS, MODULES, Trial
from tests.kma.fakes import Stage, eventually
from tests.product.three_servers.proxy import Wire

ANSWERS = {Event.COMMITTED_LATER: Action.COMMIT, Event.ROLLED_BACK_LATER: Action.ROLLBACK}
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
    one = Stage(
        tmp_path, [], modules=MODULES, connect=linked(account), publisher=lambda: AmqpPublisher(house.kma)
    )
    one.run = type(one.run)(trial.desired, "1", one.around)
    one.run.start()
    try:
        _happen(one, trial, wire)
        one.run.join(30)
        assert not one.run.alive
        trial.judge_message()
        trial.judge_records({kind: one.records(kind) for kind in KINDS})
    finally:
        trial.gate.touch()
        one.end()


def _happen(one: Stage, trial: Trial, wire: Wire) -> None:
    """What does not happen by the message's own script. A run ends by itself when its message has been
    handled."""
    event = trial.cell.event
    if event in (Event.STOPPED, Event.CONNECTION_LOST):
        eventually(lambda: trial.begun, "a start")
    elif event in OPEN:
        eventually(lambda: one.records("acknowledgement_opened") != [], "what waits for its answer")
    if event in (Event.STOPPED, Event.STOPPED_OPEN):
        one.run.stop(close=True, reason="test")
    elif event in (Event.CONNECTION_LOST, Event.CONNECTION_LOST_OPEN):
        wire.close()
        eventually(lambda: not one.run.report().connected, "the loss")
        trial.gate.touch()
    elif event in ANSWERS:
        (waiting,) = one.records("acknowledgement_opened")
        one.run.pass_on(Answer(waiting["acknowledgement"], ANSWERS[event]))
