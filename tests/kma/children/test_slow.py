"""A handling that has used most of its time, and one that takes longer than any heartbeat."""

import time
from pathlib import Path

import pytest

from broker.amqp.connection import IDLE
from broker.port import Settle
from contract.messages import Mode
from kma.children import worker_slot
from tests.broker.houses import RealHouse
from tests.kma.conftest import Lines, Make, StartWorker
from tests.kma.fake_ma import FakeMa
from tests.kma.fakes import eventually, message, said
from tests.kma.queues import of, publish, script

BROKER_IDLE = 12.0  # seconds, its amqpIdleTimeout


LIMIT = 60.0  # seconds


@pytest.mark.parametrize(
    "limit", [{"transaction_timeout_seconds": LIMIT}, {"handling_timeout_seconds": LIMIT}], ids=str
)
def test_it_is_told_once_and_shown_while_it_lasts(
    lines: Lines, stage: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: dict[str, float]
) -> None:
    (tmp_path / "patient_agent.py").write_text(
        "import pathlib, time\n"
        "from kma.agent import agent\n"
        "@agent('test.patient')\n"
        "def run_agent(message, context):\n"
        "    if message.body: return\n"
        f"    while not pathlib.Path({str(tmp_path / 'go')!r}).exists(): time.sleep(0.01)\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(worker_slot, "SHARE", 0.02)
    bodies = ["", "second"]
    made = stage(
        [message(body, identity=f"ID:{n}") for n, body in enumerate(bodies)],
        mode=Mode.TRANSACTED,
        agent="test.patient",
        modules=("patient_agent",),
        **limit,
    )
    eventually(lambda: "the limit is 60 s" in said(made.run.report().problems), "the problem")
    (tmp_path / "go").touch()
    made.settled(2)
    assert made.link.outcomes() == {Settle.ACCEPT: 2}
    eventually(lambda: not made.run.report().problems, "no problem any more")
    (told,) = [line for line in lines if line["event"] == "handling slow" and line["message_key"] == "ID:0"]
    assert (told["attempt"], told["limit_seconds"]) == (1, LIMIT)
    assert told["server"] == "srv-1" and told["activation"] and told["seconds"] >= 1.2


def test_without_a_limit_nothing_is_told(lines: Lines, stage: Make) -> None:
    made = stage(
        [message({"do": "sleep", "seconds": 1.0})], mode=Mode.TRANSACTED, transaction_timeout_seconds=0.0
    )
    made.settled(1)
    assert "handling slow" not in [line["event"] for line in lines] and not made.run.report().problems


def test_a_handling_longer_than_every_heartbeat_and_idle_timeout_keeps_its_connection(
    house: RealHouse, ma: FakeMa, start: StartWorker, tmp_path: Path
) -> None:
    setting, target = house.setting(), house.setting()
    truth = tmp_path / "truth"
    steps = [
        {"do": "sleep", "seconds": max(BROKER_IDLE, IDLE) + 2},
        {"do": "send", "destination": target.address},
    ]
    publish(house, setting, script(steps, "ID:long"))
    ma.want(of(setting, mode=Mode.TRANSACTED, parameters={"truth_file": str(truth)}))
    worker = start()
    eventually(lambda: len(worker.truth(truth)) == 1, "its start", 40)
    worker.running(setting.key)
    seen: list[bool] = []
    deadline = time.monotonic() + 60
    while house.figures(target).messages == 0 and time.monotonic() < deadline:
        seen.append(ma.last["runs"][0]["connected"])
        time.sleep(0.5)
    eventually(lambda: house.figures(setting).messages == 0, "its acceptance")
    assert len(seen) > 20 and all(seen)
    assert len(worker.truth(truth)) == 1 and ma.contents("protocol") == []
    assert house.figures(target).messages == 1
