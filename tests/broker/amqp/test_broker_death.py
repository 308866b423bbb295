"""kill -9 of the broker: nothing is lost, counts survive, everybody comes back."""

import pytest

from broker.management.desired_topology import base_topology
from broker.management.topology import differences
from broker.port import BrokerUnavailable, Outgoing, Settle
from tests.broker.houses import DLA, House, eventually, text_message

pytestmark = pytest.mark.kill


def test_a_consumer_reconnects_and_durable_messages_and_their_counts_survive(house: House) -> None:
    setting = house.setting(attempts=5, delay=0)
    consumer, owner = house.consume(setting)
    house.publish(setting.address, "survivor")
    consumer.settle([(owner.got().tag, Settle.FAIL)])
    held = owner.got()
    assert held.count == 1
    # The broker confirms no settlement, and writes its record a moment later; a publish it confirms once
    # that, and so all before it in the journal, is on the disk.
    house.publish(house.setting().address, "later")
    house.kill()
    reason, permanent = owner.loss()
    assert reason and not permanent
    house.restart()
    owner.wait("opened")
    again = owner.got()
    assert again.text == "survivor"
    # What was settled is not forgotten. In delivery when the broker died counts too, or a message that kills
    # its broker would come back for ever; that record may be on the disk or not.
    assert again.count in (1, 2)
    assert again.tag != held.tag
    consumer.settle([(held.tag, Settle.REJECT)])  # of before: ignored
    consumer.settle([(again.tag, Settle.ACCEPT)])
    eventually(lambda: house.figures(setting).messages == 0)
    assert house.dead(setting) == []


def test_topology_and_letters_survive_and_what_is_not_durable_does_not(house: House) -> None:
    setting = house.setting(exclusive=True)
    house.die(setting, "letter")
    house.publisher.publish([Outgoing(setting.address, text_message("fleeting", durable=False))])
    house.publish(setting.address, "kept")
    eventually(lambda: house.figures(setting).messages == 2)
    house.kill()
    house.restart()
    assert differences(house.management, base_topology(DLA)) == [], "what was made is what comes back"
    assert [letter.body.value for letter in house.dead(setting)] == ["letter"]
    assert [message.body.value for message in house.look(setting.address, setting.key)] == ["kept"]
    assert house.management.attribute(f"queue.{setting.key}", "Exclusive") is True


def test_what_is_not_durable_is_gone_wherever_it_was(house: House) -> None:
    setting = house.setting(attempts=9, delay=600_000)
    consumer, owner = house.consume(setting)
    for fate in ("dead", "delayed", "waiting"):
        house.publish(setting.address, f"{fate}, durable")
        house.publisher.publish([Outgoing(setting.address, text_message(f"{fate}, fleeting", durable=False))])
        for _ in range(2 if fate != "waiting" else 0):
            got = owner.got()
            assert got.message.durable is ("durable" in got.text), "an agent and its protocols can tell"
            consumer.settle([(got.tag, Settle.REJECT if fate == "dead" else Settle.FAIL)])
        if fate == "delayed":
            eventually(lambda: house.figures(setting).scheduled == 2)
            consumer.stop()
    letters = {letter.body.value: letter.durable for letter in house.until_dead(setting, 2)}
    assert letters == {"dead, durable": True, "dead, fleeting": False}
    eventually(lambda: house.figures(setting).messages == 4)
    house.kill()
    house.restart()

    assert [letter.body.value for letter in house.dead(setting)] == ["dead, durable"]
    # Delays do not survive: all that is left waits.
    left = {message.body.value for message in house.look(setting.address, setting.key)}
    assert left == {"delayed, durable", "waiting, durable"}
    assert house.figures(setting).messages == 2


def test_everybody_says_that_the_broker_is_away_and_works_again_afterwards(house: House) -> None:
    setting = house.setting()
    house.publish(setting.address, "before")
    house.kill()
    try:
        with pytest.raises(BrokerUnavailable):
            house.publish(setting.address, "lost")
        with pytest.raises(BrokerUnavailable):
            house.look(setting.address, setting.key)
        with pytest.raises(BrokerUnavailable):
            house.figures(setting)
    finally:
        house.restart()
    house.publish(setting.address, "after")
    texts = [message.body.value for message in house.look(setting.address, setting.key)]
    assert texts == ["before", "after"]
    assert house.figures(setting).messages == 2


def test_a_consumer_can_be_stopped_while_the_broker_is_away(house: House) -> None:
    setting = house.setting()
    consumer, owner = house.consume(setting)
    house.kill()
    try:
        owner.wait("lost")
        consumer.stop()
    finally:
        house.restart()
    assert house.figures(setting).consumers == 0
