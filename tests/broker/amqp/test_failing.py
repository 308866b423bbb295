"""FAIL, REJECT and what the broker makes of them."""

import time
from dataclasses import replace

from broker.management.desired_topology import Queue
from broker.management.topology import apply
from broker.port import Outgoing, Settle
from contract.typed import Typed
from tests.broker.houses import DLA, House, Setting, eventually, orig_id, orig_queue, text_message


def test_a_failed_message_comes_back_with_its_attempts_counted_until_it_is_dead(house: House) -> None:
    setting = house.setting(attempts=3)
    consumer, owner = house.consume(setting)
    house.publish(setting.address, "poison")
    for attempt in range(3):
        got = owner.got()
        assert got.count == attempt
        consumer.settle([(got.tag, Settle.FAIL)])
    owner.nothing()
    assert [letter.body.value for letter in house.until_dead(setting, 1)] == ["poison"]
    assert house.figures(setting).messages == 0


def test_the_delay_grows_as_the_policy_says(house: House) -> None:
    setting = house.setting(attempts=4, delay=100, multiplier=3.0)
    consumer, owner = house.consume(setting)
    house.publish(setting.address, "late")
    gaps = []
    got = owner.got()
    for _ in range(3):
        failed_at = time.monotonic()
        consumer.settle([(got.tag, Settle.FAIL)])
        got = owner.got()
        gaps.append(got.at - failed_at)
    # Never sooner; how much later depends on the machine. 20 ms for the clocks of two processes.
    assert all(gap > wanted - 0.02 for gap, wanted in zip(gaps, (0.1, 0.3, 0.9), strict=True))


def test_other_messages_overtake_one_that_waits_for_its_redelivery(house: House) -> None:
    setting = house.setting(delay=60_000)
    consumer, owner = house.consume(setting)
    house.publish(setting.address, "fails", "next")
    consumer.settle([(owner.got().tag, Settle.FAIL)])
    assert owner.got().text == "next"
    eventually(lambda: house.figures(setting).scheduled == 1)


def test_a_delayed_message_is_not_seen_by_browsing_but_counted(house: House) -> None:
    setting = house.setting(delay=60_000)
    consumer, owner = house.consume(setting)
    house.publish(setting.address, "fails")
    consumer.settle([(owner.got().tag, Settle.FAIL)])
    eventually(lambda: house.figures(setting).scheduled == 1)
    assert house.look(setting.address, setting.key) == []
    assert house.figures(setting).messages == 1


def test_a_rejected_message_is_dead_at_once_however_many_attempts_are_left(house: House) -> None:
    setting = house.setting(attempts=10, delay=60_000)
    consumer, owner = house.consume(setting)
    house.publish(setting.address, "invalid")
    consumer.settle([(owner.got().tag, Settle.REJECT)])
    letter = house.until_dead(setting, 1)[0]
    assert orig_queue(letter) == setting.key
    assert letter.annotations["x-opt-ORIG-ADDRESS"] == Typed("string", setting.address)


def test_each_letter_is_in_its_settings_queue_and_in_the_feed_and_nowhere_else(house: House) -> None:
    one = house.setting()
    other = house.setting(address=one.address)
    consumer, owner = house.consume(one)
    house.publish(one.address, "mine")
    consumer.settle([(owner.got().tag, Settle.REJECT)])
    letter = house.until_dead(one, 1)[0]
    assert house.dead(other) == []
    assert orig_id(letter) in [orig_id(each) for each in house.look(DLA, "DLQ.feed", limit=100_000)]
    assert one.key not in [orig_queue(each) for each in house.look(DLA, "DLQ.unknown", limit=100_000)]
    assert one.key not in [orig_queue(each) for each in house.look(DLA, "DLQ.bin", limit=100_000)]


def test_a_letter_of_nobody_is_in_the_feed_alone(house: House) -> None:
    setting = house.setting()
    stranger = Setting(f"{setting.key}-by-hand", setting.address)
    apply(house.management, [Queue(stranger.key, stranger.address)])
    consumer, owner = house.consume(stranger)
    house.publish(setting.address, "lost?")
    consumer.settle([(owner.got().tag, Settle.REJECT)])

    def caught(queue: str) -> bool:
        return stranger.key in [orig_queue(each) for each in house.look(DLA, queue, limit=100_000)]

    eventually(lambda: caught("DLQ.feed"))
    assert not caught("DLQ.unknown")


def test_a_letter_keeps_what_the_producer_set(house: House) -> None:
    setting = house.setting()
    message = text_message(
        "whole",
        message_id=Typed("string", "ID:7"),
        correlation_id=Typed("ulong", 7),
        properties={
            "amount": Typed("decimal64", bytes(8)),
            "n": Typed("short", -3),
            "at": Typed("timestamp", 12345),
        },
        priority=7,
        reply_to="somewhere",
        subject="kind",
        content_type="text/plain",
        group_id="g",
        group_sequence=3,
    )
    consumer, owner = house.consume(setting)
    house.publisher.publish([Outgoing(setting.address, message)])
    consumer.settle([(owner.got().tag, Settle.REJECT)])
    letter = house.until_dead(setting, 1)[0]
    assert replace(letter, annotations={}, to="") == message
