"""What a changed policy does to messages that the broker has already, and where they go when they expire."""

import time

from broker.management.desired_topology import setting_topology
from broker.management.topology import apply
from broker.port import Settle
from contract.redelivery import RedeliveryPolicy
from tests.broker.houses import DLA, House, RealHouse, Setting, eventually

EXPIRED = "x-opt-ACTUAL-EXPIRY"


def change(house: House, setting: Setting, policy: RedeliveryPolicy, expiry_ms: int | None = None) -> None:
    apply(
        house.management,
        setting_topology(setting.key, setting.address, policy, False, DLA, expiry_ms=expiry_ms),
    )


def test_a_delayed_message_keeps_its_delay_and_fails_by_the_new_policy(house: House) -> None:
    setting = house.setting(attempts=9, delay=1500)
    consumer, owner = house.consume(setting)
    house.publish(setting.address, "delayed")
    failed_at = time.monotonic()
    consumer.settle([(owner.got().tag, Settle.FAIL)])
    eventually(lambda: house.figures(setting).scheduled == 1)
    change(house, setting, RedeliveryPolicy(9, 100, 5.0, 100_000))

    got = owner.got()
    assert got.count == 1 and got.at - failed_at > 1.45
    failed_at = time.monotonic()
    consumer.settle([(got.tag, Settle.FAIL)])
    got = owner.got()
    assert got.count == 2 and got.at - failed_at > 0.48, "the second delay of the new policy"


def test_a_lower_maximum_is_reached_with_the_next_failure(house: House) -> None:
    setting = house.setting(attempts=9, delay=0)
    consumer, owner = house.consume(setting)
    house.publish(setting.address, "often")
    for _ in range(3):
        consumer.settle([(owner.got().tag, Settle.FAIL)])
    got = owner.got()
    change(house, setting, RedeliveryPolicy(2, 0))
    assert house.dead(setting) == []
    consumer.settle([(got.tag, Settle.FAIL)])
    assert [letter.body.value for letter in house.until_dead(setting, 1)] == ["often"]


def test_a_changed_expiry_is_only_for_what_comes_afterwards(real: RealHouse) -> None:
    setting = real.setting(attempts=9, delay=0)
    real.publish(setting.address, "before")
    change(real, setting, RedeliveryPolicy(9, 0), expiry_ms=400)
    real.publish(setting.address, "after")
    eventually(lambda: real.figures(setting).messages == 2)
    time.sleep(0.5)
    consumer, owner = real.consume(setting)
    # It looks when it delivers: nobody waits for its scan.
    assert owner.got().text == "before"
    letter = real.until_dead(setting, 1)[0]
    assert (letter.body.value, letter.delivery_count) == ("after", 0) and EXPIRED in letter.annotations
    consumer.stop()


def test_a_message_that_expires_while_it_is_delayed_is_dead_when_it_was_due(real: RealHouse) -> None:
    setting = real.setting(attempts=9, delay=1500)
    change(real, setting, RedeliveryPolicy(9, 1500), expiry_ms=500)
    consumer, owner = real.consume(setting)
    real.publish(setting.address, "late")
    failed_at = time.monotonic()
    consumer.settle([(owner.got().tag, Settle.FAIL)])
    letter = real.until_dead(setting, 1)[0]
    assert EXPIRED in letter.annotations
    assert time.monotonic() - failed_at > 1.45
    owner.nothing()


def test_a_dead_letter_never_expires_and_given_back_it_gets_the_expiry_anew(real: RealHouse) -> None:
    setting = real.setting(attempts=9, delay=0)
    change(real, setting, RedeliveryPolicy(9, 0), expiry_ms=600)
    consumer, owner = real.consume(setting)
    real.publish(setting.address, "once")
    got = owner.got()
    assert got.message.expires_at is not None
    consumer.settle([(got.tag, Settle.REJECT)])
    letter = real.until_dead(setting, 1)[0]
    assert letter.expires_at is None and not letter.ttl_ms

    assert real.management.call(f"queue.{setting.dead}", "moveMessages", 100, "", setting.key, False, 1) == 1
    again = owner.got()
    assert again.message.expires_at is not None and again.message.expires_at > got.message.expires_at
    assert EXPIRED not in again.message.annotations
    # At hand when it expires: it ends as its handling ends.
    time.sleep(0.8)
    consumer.settle([(again.tag, Settle.ACCEPT)])
    eventually(lambda: real.figures(setting).messages == 0)
    assert real.dead(setting) == []
