"""A subscription that is held: it gathers and delivers nothing, and what is moved beside it goes ahead."""

import json

import pytest

from broker.management.desired_topology import setting_topology
from broker.management.topology import apply, differences, remove_setting
from broker.port import ManagementFailed, Settle
from contract.names import FEED, ahead_queue
from contract.redelivery import RedeliveryPolicy
from tests.broker.houses import DLA, House, Owner, RealHouse, Setting

POLICY = RedeliveryPolicy(max_attempts=3, delay=50, multiplier=1.0, max_delay=100_000)


def hold(house: House, setting: Setting, held: bool = True) -> list[str]:
    wanted = setting_topology(setting.key, setting.address, POLICY, True, DLA, held=held)
    changed = apply(house.management, wanted)
    assert differences(house.management, wanted) == []
    return [str(each) for each in changed]


def ahead(house: House, setting: Setting) -> Setting:
    return Setting(ahead_queue(setting.key), setting.address)


def taken(owner: Owner, count: int) -> list[str]:
    return [str(owner.got().message.body.value) for _ in range(count)]


def move_ahead(house: House, setting: Setting) -> None:
    arguments = (100, "_AMQ_ORIG_QUEUE IS NOT NULL", ahead_queue(setting.key), False, 1)
    assert house.management.call(f"queue.{setting.dead}", "moveMessages", *arguments) == 1


def test_a_held_subscription_gathers_and_what_is_moved_beside_it_goes_ahead(house: House) -> None:
    setting = house.setting(exclusive=True)
    house.die(setting, "first")
    consumer, owner = house.consume(setting)
    assert f"queue {setting.key}: paused: expected true, found false" in hold(house, setting)
    house.publish(setting.address, "second", "third")
    owner.nothing()
    assert house.figures(setting).waiting == 2
    assert house.figures(ahead(house, setting)).messages == 0, "it takes only what is moved into it"

    beside, its_owner = house.consume(ahead(house, setting))
    move_ahead(house, setting)
    assert taken(its_owner, 1) == ["first"]
    owner.nothing()
    beside.stop()
    hold(house, setting, held=False)
    assert taken(owner, 2) == ["second", "third"]
    consumer.stop()


def test_what_a_consumer_holds_when_the_hold_begins_is_counted_until_it_lets_go(house: House) -> None:
    setting = house.setting(exclusive=True)
    consumer, owner = house.consume(setting, window=1)
    house.publish(setting.address, "one", "two")
    got = owner.got()
    hold(house, setting)
    assert house.figures(setting).delivering == 1
    consumer.settle([(got.tag, Settle.ACCEPT)])
    owner.nothing()
    assert (house.figures(setting).delivering, house.figures(setting).messages) == (0, 1)


def test_what_dies_ahead_lies_among_the_dead_letters_of_its_setting(house: House) -> None:
    setting = house.setting(exclusive=True, attempts=1)
    house.die(setting, "again")
    hold(house, setting)
    move_ahead(house, setting)
    consumer, owner = house.consume(ahead(house, setting))
    consumer.settle([(owner.got().tag, Settle.REJECT)])
    assert [str(letter.body.value) for letter in house.until_dead(setting, 1)] == ["again"]


def test_a_setting_is_not_removed_while_something_lies_ahead(house: House) -> None:
    setting = house.setting()
    house.die(setting, "kept")
    hold(house, setting)
    move_ahead(house, setting)
    house.management.call(f"queue.DLQ.{FEED}", "removeAllMessages")
    with pytest.raises(ManagementFailed, match="ahead holds 1 messages"):
        remove_setting(house.management, setting.key)


@pytest.mark.kill
def test_a_hold_outlives_the_broker(house: House) -> None:
    setting = house.setting(exclusive=True)
    house.die(setting, "first")
    hold(house, setting)
    house.publish(setting.address, "waits")
    move_ahead(house, setting)
    house.kill()
    house.restart()
    wanted = setting_topology(setting.key, setting.address, POLICY, True, DLA, held=True)
    assert differences(house.management, wanted) == []
    _consumer, owner = house.consume(setting)
    _beside, its_owner = house.consume(ahead(house, setting))
    assert taken(its_owner, 1) == ["first"]
    owner.nothing()
    hold(house, setting, held=False)
    assert taken(owner, 1) == ["waits"]


def test_a_filter_of_before_names_both_queues_once_it_is_held(real: RealHouse) -> None:
    setting = real.setting()
    only = {
        "name": setting.dead, "address": DLA, "routing-type": "MULTICAST", "durable": True,
        "exclusive": False, "filter-string": f"_AMQ_ORIG_QUEUE = '{setting.key}'",
    }  # fmt: skip
    real.management.call("broker", "updateQueue", json.dumps(only))
    changed = hold(real, setting)
    assert any(text.startswith(f"queue {setting.dead}: filter") for text in changed)
