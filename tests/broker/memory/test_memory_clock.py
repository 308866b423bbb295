"""The memory broker's time can be moved by hand."""

import json

from broker.management.desired_topology import base_topology, setting_topology
from broker.management.topology import apply
from broker.memory.broker import MemoryBroker
from broker.port import Outgoing, Settle
from contract.redelivery import RedeliveryPolicy
from tests.broker.houses import DLA, Owner, text_message


def test_a_redelivery_waits_for_the_clock() -> None:
    now = [0.0]
    broker = MemoryBroker(clock=lambda: now[0])
    management = broker.management()
    policy = RedeliveryPolicy(max_attempts=3, delay=5000, multiplier=2.0)
    apply(management, base_topology(DLA) + setting_topology("key", "address", policy, False, DLA))
    owner = Owner()
    consumer = broker.consumer("address", "key", owner, 1)
    consumer.start()
    broker.publisher().publish([Outgoing("address", text_message("late"))])
    for wait in (5.0, 10.0):
        consumer.settle([(owner.got().tag, Settle.FAIL)])
        now[0] += wait - 0.001
        broker.tick()
        owner.nothing(0.05)
        now[0] += 0.001
        broker.tick()
    assert owner.got().count == 2
    consumer.stop()


def test_it_answers_management_in_the_form_of_the_real_one() -> None:
    management = MemoryBroker().management()
    apply(management, base_topology(DLA))
    rows = json.loads(management.call("broker", "listQueues", "", 1, 100))
    assert {row["name"] for row in rows["data"]} == {"DLQ.feed", "DLQ.unknown", "DLQ.bin", "MA.unreadable"}
    assert rows["count"] == 4
