"""A JMS StreamMessage that holds bytes on the subscription of a container: kills during a probe, a broker
that restarts, and an ordered setting. What lies behind it is handled exactly once, and it is a dead
letter."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from tests.broker.amqp_proxy import AmqpProxy, drains
from tests.broker.houses import RealHouse, Setting
from tests.broker.jms import jms_messages
from tests.kma.fake_ma import FakeMa
from tests.kma.fakes import eventually
from tests.kma.queues import of, publish, script
from tests.kma.worker import Worker
from tests.services import ArtemisService, throw_away_folder

pytestmark = pytest.mark.process


def send_undeliverable(house: RealHouse, setting: Setting) -> None:
    jms_messages.send_core(house, setting, jms_messages.STREAM, jms_messages.stream_body_with_bytes())


def publish_behind(house: RealHouse, setting: Setting, *identities: str) -> None:
    """With the priority of what management sends, or they would overtake it."""
    publish(house, setting, *[replace(script({"do": "ok"}, identity), priority=0) for identity in identities])


def handled(worker: Worker, truth: Path) -> Counter[str]:
    return Counter(line["id"] for line in worker.truth(truth))


@pytest.mark.kill
@pytest.mark.parametrize("ordered", [False, True], ids=["plain", "ordered"])
def test_a_container_that_is_killed_during_a_probe_handles_what_follows_exactly_once(
    house: RealHouse, ma: FakeMa, tmp_path: Path, ordered: bool
) -> None:
    setting = house.setting(attempts=3, exclusive=ordered)
    truth = tmp_path / "truth"
    ma.want(of(setting, ordered=ordered, max_attempts=3, parameters={"truth_file": str(truth)}))
    proxy = AmqpProxy(house.kma.url)
    worker = Worker(tmp_path, ma, house.kma)
    worker.environment["KMA_AMQP_URL"] = proxy.url
    probed: list[bytes] = []

    def swallow_drain(frame: bytes) -> bool:
        """The probe never reaches the broker: the container waits for its answer when it is killed."""
        if len(probed) < 1 and drains(frame):
            probed.append(frame)
            return False
        return True

    try:
        worker.start()
        worker.running(setting.key)
        proxy.to_broker = swallow_drain
        send_undeliverable(house, setting)
        eventually(lambda: probed != [], "a probe", 40)
        publish_behind(house, setting, "ID:1", "ID:2", "ID:3")
        worker.kill()
        worker.start()
        eventually(lambda: len(handled(worker, truth)) == 3, "those behind it", 60)
        assert worker.stop() == 0
        assert handled(worker, truth) == {"ID:1": 1, "ID:2": 1, "ID:3": 1}
        assert [line["id"] for line in worker.truth(truth)] == ["ID:1", "ID:2", "ID:3"]
        # Each link makes one more letter of the same death: the feed removes all but one (tests/dlq).
        deaths = [letter.properties["_AMQ_ORIG_MESSAGE_ID"].value for letter in house.dead(setting)]
        assert len(set(deaths)) == 1 and len(deaths) <= 2
    finally:
        worker.stop()
        proxy.close()


@pytest.mark.kill
@pytest.mark.parametrize("ordered", [False, True], ids=["plain", "ordered"])
def test_a_broker_that_is_killed_and_starts_again_handles_what_follows_exactly_once(ordered: bool) -> None:
    with throw_away_folder("undeliverable") as folder:
        service = ArtemisService.create(folder / "broker")
        service.start()
        house, ma = RealHouse(service), FakeMa()
        setting = house.setting(attempts=3, exclusive=ordered)
        truth = folder / "truth"
        worker = Worker(folder, ma, house.kma)
        ma.want(of(setting, ordered=ordered, max_attempts=3, parameters={"truth_file": str(truth)}))
        try:
            worker.start()
            worker.running(setting.key)
            send_undeliverable(house, setting)
            publish_behind(house, setting, "ID:1", "ID:2")
            eventually(lambda: len(handled(worker, truth)) == 2, "those behind it", 60)
            house.until_dead(setting, 1)
            eventually(lambda: any(run["handled"] == 2 for run in ma.last["runs"]), "their report", 40)
            service.kill()
            service.start()
            again = RealHouse(service)
            worker.running(setting.key)
            publish_behind(again, setting, "ID:3", "ID:4")
            eventually(lambda: len(handled(worker, truth)) == 4, "what came later", 60)
            assert worker.stop() == 0
            assert handled(worker, truth) == {f"ID:{n}": 1 for n in (1, 2, 3, 4)}
            # The restart ended the message: on disk it was acknowledged.
            assert len(again.dead(setting)) == 1
            assert again.figures(setting).messages == 0
            again.close()
        finally:
            worker.stop()
            ma.close()
            house.close()
            service.stop()
