"""What a standalone agent sends, from a whole container to the real Artemis."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from contract.names import JMS_KIND
from tests.broker.houses import RealHouse
from tests.kma.fake_ma import FakeMa
from tests.kma.fakes import eventually
from tests.kma.standalone.standalone_stage import MODULE, standalone
from tests.kma.worker import Worker
from tests.services import ArtemisService


@pytest.fixture
def house(artemis: ArtemisService) -> Iterator[RealHouse]:
    one = RealHouse(artemis)
    yield one
    one.close()


@pytest.fixture
def worker(tmp_path: Path, ma: FakeMa, house: RealHouse) -> Iterator[Worker]:
    one = Worker(tmp_path, ma, house.kma)
    one.environment["KMA_AGENTS"] = MODULE
    yield one
    if one.process is not None:
        one.process.send_signal(signal.SIGCONT)
    one.stop()


def test_what_it_sends_is_in_the_queue_though_it_fails_later(
    house: RealHouse, ma: FakeMa, worker: Worker, tmp_path: Path
) -> None:
    setting = house.setting()
    script = [{"do": "send", "destination": setting.address, "count": 5, "body": "report"}, {"do": "raise"}]
    ma.want(standalone(tmp_path / "truth", script))
    worker.start()
    eventually(lambda: ma.kinds() == ["protocol", "closing"], "the end of the run", 40)
    found = house.look(setting.address, setting.key)
    assert [one.properties["index"].value for one in found] == [0, 1, 2, 3, 4]
    assert all(
        one.durable and one.body.value == "report" and one.annotations[JMS_KIND].value == 5 for one in found
    )


def test_an_address_that_does_not_exist_is_refused_where_it_is_sent_to(
    ma: FakeMa, worker: Worker, tmp_path: Path
) -> None:
    ma.want(standalone(tmp_path / "truth", {"do": "send", "destination": "no.such.address"}))
    worker.start()
    eventually(lambda: ma.kinds() == ["protocol", "closing"], "the end of the run", 40)
    (protocol,) = ma.contents("protocol")
    assert (
        protocol["exception_type"] == "kma.agent.SendRefused"
        and "no.such.address" in protocol["exception_text"]
    )


def test_without_a_broker_a_send_is_temporary_and_the_run_trips_nothing(
    house: RealHouse, ma: FakeMa, worker: Worker, tmp_path: Path
) -> None:
    setting = house.setting()
    worker.environment["KMA_AMQP_URL"] = "amqp://127.0.0.1:1"
    script = {"do": "send", "destination": setting.address}
    ma.want(standalone(tmp_path / "truth", script, restart_seconds=0.2, max_failures=3))
    worker.start()
    eventually(lambda: len(ma.contents("protocol")) >= 3, "three protocols", 40)
    assert all(one["temporary"] and one["outcome"] == "temporary" for one in ma.contents("protocol"))
    assert ma.kinds() == ["protocol"] * len(ma.kinds())


def test_what_it_sent_while_the_container_was_stopped_goes_nowhere_after_its_lease(
    house: RealHouse, ma: FakeMa, worker: Worker, tmp_path: Path
) -> None:
    """Another server may have begun by then; the agent was not told that it was sent."""
    setting = house.setting()
    truth = tmp_path / "truth"
    send = {"do": "send", "destination": setting.address, "first": 1}
    ma.want(standalone(truth, [{"do": "sleep", "seconds": 1.5, "first": 1}, send], lease_seconds=3.0))
    worker.start()
    eventually(lambda: len(worker.truth(truth)) == 1, "a start", 40)
    assert worker.process is not None
    worker.process.send_signal(signal.SIGSTOP)
    stat = Path(f"/proc/{worker.truth(truth)[0]['pid']}/stat")
    eventually(lambda: stat.read_text().rsplit(") ", 1)[1][0] == "Z", "its end", 10)
    worker.process.send_signal(signal.SIGCONT)
    eventually(lambda: ma.kinds() == ["closing"], "the end of its second start", 40)
    assert len(worker.truth(truth)) == 2
    assert house.look(setting.address, setting.key) == []
