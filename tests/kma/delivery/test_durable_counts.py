"""Attempts are counted on, whatever the broker forgets."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from broker.amqp.codec import decode, encode
from broker.port import Message, Outgoing, Settle
from contract.typed import Typed
from tests.broker.houses import RealHouse
from tests.kma.conftest import Make, StartWorker
from tests.kma.fake_ma import FakeMa
from tests.kma.fakes import eventually, message
from tests.kma.queues import of


def test_a_broker_that_forgot_the_count_gives_no_attempt_more(stage: Make) -> None:
    one = stage([message({"do": "raise"}, identity="ID:1")], max_attempts=3, broker_attempts=9)
    eventually(lambda: len(one.records("protocol")) >= 1, "the first")
    one.settled(3)
    assert [record["message"]["attempt"] for record in one.records("protocol")] == [1, 2, 3]
    eventually(lambda: one.spool.attempts("orders") == {}, "nothing known of it any more")


def test_it_counts_on_from_what_it_knows(stage: Make) -> None:
    one = stage([], max_attempts=3)
    one.link.max_attempts = 1  # what fails goes nowhere: it is put anew, without a count
    for attempt in (1, 2, 3):
        one.link.put(message({"do": "raise"}, identity="ID:1"))
        one.settled(attempt)
    assert one.link.outcomes() == {Settle.FAIL: 2, Settle.REJECT: 1}
    assert [record["message"]["attempt"] for record in one.records("protocol")] == [1, 2, 3]
    one.link.put(message({"do": "raise", "first": 1}, identity="ID:2"))
    one.settled(4)
    assert one.spool.attempts("orders") == {"ID:2": 1}
    one.link.put(message({"do": "raise", "first": 1}, identity="ID:2"))
    one.settled(5)
    assert one.spool.attempts("orders") == {}, "handled well"


def test_weak_keys_share_nothing(stage: Make) -> None:
    one = stage([], max_attempts=3)
    found = message({"do": "raise"})
    one.link.put(encode(replace(decode(found), message_id=None)))
    one.settled(1)
    assert one.spool.attempts("orders") == {}


@pytest.mark.kill
def test_a_paged_message_has_its_attempts_though_broker_and_container_are_killed(
    house: RealHouse, ma: FakeMa, start: StartWorker, tmp_path: Path
) -> None:
    setting = house.setting(attempts=4, delay=3000)
    policy = json.loads(house.management.call("broker", "getAddressSettingsAsJSON", setting.address))
    paging = {"maxSizeBytes": 20_000, "pageSizeBytes": 10_000, "addressFullMessagePolicy": "PAGE"}
    kept = (
        "deadLetterAddress",
        "maxDeliveryAttempts",
        "redeliveryDelay",
        "redeliveryMultiplier",
        "maxRedeliveryDelay",
    )
    wish = {**{name: policy[name] for name in kept if name in policy}, **paging, "autoCreateQueues": False}
    house.management.call("broker", "addAddressSettings", setting.address, json.dumps(wish))
    filler = [Message(body=Typed("string", json.dumps({"do": "ok", "text": "x" * 1000}))) for _ in range(60)]
    bad = Message(body=Typed("string", json.dumps({"do": "raise"})), message_id=Typed("string", "ID:bad"))
    house.publisher.publish([Outgoing(setting.address, one) for one in (*filler, bad)])
    assert house.management.attribute(f"address.{setting.address}", "Paging"), "it is about paged messages"
    truth = tmp_path / "truth"
    ma.want(of(setting, max_attempts=4, parameters={"truth_file": str(truth)}))
    worker = start()

    def attempts() -> list[int]:
        return [line["attempt"] for line in worker.truth(truth) if line["id"] == "ID:bad"]

    eventually(lambda: len(ma.contents("protocol")) == 2, "two attempts", 60)
    house.kill()
    house.restart()
    eventually(lambda: len(ma.contents("protocol")) == 3, "the third", 60)
    worker.kill()
    worker.start()
    house.until_dead(setting, 1)
    eventually(lambda: len(ma.contents("protocol")) == 4, "the last", 60)
    assert attempts() == [1, 2, 3, 4]
