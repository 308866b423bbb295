"""The breaker trips on a broker: what was delivered, what is where afterwards, and a container killed around
it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from broker.port import Consumer, ConsumerEvents
from contract.messages import DesiredRun
from tests.broker.houses import House, RealHouse
from tests.kma.conftest import StartWorker
from tests.kma.fake_ma import FakeMa
from tests.kma.fakes import Stage, eventually
from tests.kma.queues import of, publish, script

pytestmark = pytest.mark.process

BAD, OK = {"do": "raise", "type": "KeyError"}, {"do": "ok"}
MINUTE = 60_000  # ms: what failed does not come back during the test


def linked(house: House) -> Callable[[DesiredRun, ConsumerEvents], Consumer]:
    def connect(run: DesiredRun, events: ConsumerEvents) -> Consumer:
        return house.consumer(run.destination, run.queue, events, 0)  # type: ignore[arg-type]  # an Owner is one

    return connect


def truth(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@pytest.mark.parametrize("concurrency", [1, 4])
def test_a_permanent_failure_spends_few_deliveries_and_no_message_dies_of_the_trip(
    either: House, tmp_path: Path, concurrency: int
) -> None:
    setting = either.setting(attempts=10, delay=MINUTE)
    publish(either, setting, *(script(OK) for _ in range(200)))
    file = tmp_path / "truth"
    desired = of(
        setting,
        max_failures=10,
        concurrency=concurrency,
        max_attempts=10,
        parameters={"truth_file": str(file)},
    )
    one = Stage(tmp_path, [], connect=linked(either))
    one.desired = desired
    one.run = type(one.run)(desired, "1", one.around)
    one.run.start()
    try:
        # Quick successes first, so that much is taken in advance; all of them, or a late one would begin a
        # new row.
        eventually(lambda: one.run.report().handled == 200, "the good ones", 40)
        publish(either, setting, *(script(BAD, f"ID:{n}") for n in range(80)))
        one.run.join(40)
        assert not one.run.alive, "it ends by itself"
        failed = len(truth(file)) - 200
        assert 3 <= failed <= 3 + concurrency
        assert len(one.records("protocol")) == failed and len(one.records("interruption")) == 1
        eventually(lambda: either.figures(setting).delivering == 0, "the rest given back")
        figures = either.figures(setting)
        assert (figures.messages, figures.scheduled) == (80, failed)
        waiting = either.look(setting.address, setting.key)
        assert [message.delivery_count for message in waiting if message.delivery_count == 0] == [0] * (
            80 - failed
        )
        assert either.dead(setting) == []
    finally:
        one.end()


KILLER = """
import os, signal
from contract.records import Interruption
from kma.spool.records import Spool

real = Spool.append

def append(self, records, **more):
    trips = any(isinstance(new.content, Interruption) for new in records)
    where = os.environ.get("TEST_KILL", "")
    if trips and where == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    real(self, records, **more)
    if trips and where == "after":
        os.kill(os.getpid(), signal.SIGKILL)

Spool.append = append
"""


@pytest.mark.kill
@pytest.mark.parametrize("where", ["before", "after"])
def test_a_container_that_is_killed_around_the_transaction_of_a_trip_trips_once(
    house: RealHouse, ma: FakeMa, start: StartWorker, tmp_path: Path, where: str
) -> None:
    (tmp_path / "killer").mkdir()
    (tmp_path / "killer" / "sitecustomize.py").write_text(KILLER)
    root = str(Path(__file__).resolve().parents[3])
    killing = {"PYTHONPATH": f"{tmp_path / 'killer'}:{root}", "TEST_KILL": where}
    setting = house.setting(attempts=10, delay=MINUTE)
    file = tmp_path / "truth"
    publish(house, setting, *(script(BAD, f"ID:{n}") for n in range(20)))
    ma.want(of(setting, max_failures=6, max_attempts=10, parameters={"truth_file": str(file)}))
    worker = start(environment=killing)
    assert worker.process is not None and worker.process.wait(60) == -9
    before = len(truth(file))
    assert before == 2 and ma.contents("interruption") == []
    worker.environment["TEST_KILL"] = ""
    worker.start()
    eventually(lambda: ma.contents("closing") != [], "the closing record", 60)
    (interruption,), (closing,) = ma.contents("interruption"), ma.contents("closing")
    outcomes = [one["outcome"] for one in ma.contents("protocol")]
    again = {"before": ["raised", "kma_died", "raised"], "after": ["raised", "raised"]}[where]
    assert outcomes == again and len(truth(file)) == len(again)
    raised = [key for key, record in ma.records.items() if record["content"].get("outcome") == "raised"]
    assert interruption["evidence"] == raised
    assert (closing["state"], ma.spooled(closing)) == ("interrupted", len(again) + 1)
    eventually(lambda: any(run["state"] == "interrupted" for run in ma.last["runs"]), "its word for it")
    eventually(lambda: house.figures(setting).delivering == 0, "all given back")
    assert house.figures(setting).messages == 20 and house.dead(setting) == []
    beats = len(ma.heartbeats)
    eventually(lambda: len(ma.heartbeats) > beats + 5, "some heartbeats more")
    assert len(truth(file)) == len(again), "it is wanted still, and not taken up again"


def test_a_run_resumed_under_a_higher_epoch_goes_on_with_the_waiting_messages(
    house: RealHouse, ma: FakeMa, start: StartWorker
) -> None:
    setting = house.setting(attempts=10, delay=MINUTE)
    publish(house, setting, *(script({**BAD, "first": 1}, f"ID:{n}") for n in range(2)))
    ma.want(of(setting, max_failures=6, max_attempts=10))
    start()
    eventually(lambda: ma.contents("closing") != [], "the closing record", 60)
    publish(house, setting, script(BAD, "ID:later"), script(OK))
    ma.want(of(setting, max_failures=6, max_attempts=10, epoch=2))
    eventually(lambda: any(run["handled"] == 1 for run in ma.last["runs"]), "the message that waited", 40)
    assert len(ma.contents("interruption")) == 1, "it counts from 0"
