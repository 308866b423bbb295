"""Handlings that sent something and finished together: whose commits may be one, and kill -9 around it."""

from collections import Counter
from pathlib import Path

import pytest

from broker.port import Settle
from contract.messages import Mode
from tests.broker.houses import RealHouse
from tests.kma.conftest import Lines, Make, StartWorker
from tests.kma.fake_ma import FakeMa
from tests.kma.fakes import eventually, message
from tests.kma.queues import of, publish, script

SEND = {"do": "send", "destination": "demo.invoices"}
MOMENTS = ("before", "between", "after")
# Loaded in the container itself; its children have no token. Kills it around the commit of a shared
# transaction.
SITE = """
import os, signal
if "KMA_TOKEN" in os.environ and os.environ["TEST_MOMENT"]:
    from pathlib import Path
    from broker.amqp.connection import AmqpConnection
    from broker.amqp.transactions import Transactions

    moment, told = os.environ["TEST_MOMENT"], Path(os.environ["TEST_TOLD"])
    discharge, step, end = Transactions._discharge, AmqpConnection.step, Transactions._end
    discharged = []

    def die():
        told.touch()
        os.kill(os.getpid(), signal.SIGKILL)

    def discharging(self, work):
        shared = len(work.parts) >= 3
        if moment == "before" and shared:
            die()
        discharge(self, work)
        if shared:
            discharged.append(work)

    def stepping(self, timeout):
        if moment == "between" and discharged:
            step(self, 0.0)
            die()
        return step(self, timeout)

    def ending(self, work, problem, taken):
        if moment == "after" and len(work.parts) >= 3 and problem is None:
            die()
        end(self, work, problem, taken)

    Transactions._discharge, AmqpConnection.step, Transactions._end = discharging, stepping, ending
"""


@pytest.mark.parametrize(
    ("limit", "shares"), [(3, [True, False, False]), (2, [False, False]), (-1, [True] * 3)]
)
def test_none_whose_attempts_a_failed_commit_could_use_up(
    stage: Make, limit: int, shares: list[bool]
) -> None:
    counts = range(len(shares))
    made = stage([message(SEND, count=count) for count in counts], max_attempts=limit)
    made.settled(len(shares))
    assert made.link.may_share == shares
    assert made.link.outcomes() == {Settle.ACCEPT: len(shares)}


def test_a_commit_in_doubt_is_no_failure(lines: Lines, stage: Make) -> None:
    made = stage([], concurrency=3, mode=Mode.TRANSACTED)
    made.link.held = []
    made.link.put(*(message(SEND, identity=f"ID:{n}") for n in range(3)))
    eventually(lambda: len(made.link.held or ()) >= 3, "commits")
    made.link.lose()
    eventually(lambda: len(made.link.held or ()) >= 6, "their second handling")
    made.link.held = made.link.held[3:]
    made.link.let_go()
    made.settled(3)
    assert made.records("protocol") == [] and made.run.report().failed == 0
    (told,) = [line for line in lines if line["event"].startswith("in doubt")]
    assert sorted(told["message_keys"]) == [f"ID:{n}" for n in range(3)]


@pytest.mark.kill
def test_kill_9_around_a_shared_commit_loses_nothing_and_sends_nothing_twice(
    house: RealHouse, ma: FakeMa, start: StartWorker, tmp_path: Path
) -> None:
    setting, target = house.setting(attempts=9), house.setting()
    publish(
        house,
        setting,
        *(script({"do": "send", "destination": target.address}, f"ID:{n}") for n in range(400)),
    )
    ma.want(of(setting, mode=Mode.TRANSACTED, concurrency=4, max_attempts=9))
    (tmp_path / "sitecustomize.py").write_text(SITE)
    worker = start(environment={"TEST_MOMENT": ""})
    root = worker.environment["PYTHONPATH"]
    worker.kill()
    for moment in MOMENTS:
        told = tmp_path / moment
        worker.environment |= {
            "PYTHONPATH": f"{tmp_path}:{root}",
            "TEST_MOMENT": moment,
            "TEST_TOLD": str(told),
        }
        worker.start()
        eventually(told.exists, f"kill {moment}; see {worker.log}", 40)
        worker.kill()
    worker.environment["TEST_MOMENT"] = ""
    worker.start()
    eventually(lambda: house.figures(setting).messages == 0, "an empty queue", 60)
    assert worker.stop() == 0
    effects = Counter(
        str(found.correlation_id or found.message_id) for found in house.look(target.address, target.key)
    )
    assert len(effects) == 400 and set(effects.values()) == {1}
    assert house.dead(setting) == []
    assert {one["outcome"] for one in ma.contents("protocol")} <= {"kma_died"}
