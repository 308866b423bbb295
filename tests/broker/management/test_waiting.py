"""Messages before they are handled: what the broker tells of them, and what is done to one."""

import json
import time

import pytest

from broker.management import waiting_messages
from broker.management.desired_topology import hold_topology
from broker.management.topology import apply, differences, remove_setting
from broker.port import ManagementFailed, Message, Outgoing, Settle
from contract.names import hold_queue, server_of
from contract.typed import Typed
from tests.broker.houses import (
    DLA,
    SERVER,
    House,
    RealHouse,
    Setting,
    eventually,
    orig_id,
    orig_queue,
    settle_all,
)

HOUR = 3_600_000


def fail(house: House, setting: Setting, *texts: str) -> None:
    """Publishes and fails them once: they are delayed."""
    consumer, owner = house.consume(setting)
    house.publish(setting.address, *texts)
    settle_all(consumer, [owner.got() for _ in texts], Settle.FAIL)
    eventually(lambda: house.figures(setting).scheduled == len(texts))
    consumer.stop()


def ids(rows: list[waiting_messages.Row] | None) -> list[int]:
    assert rows is not None
    return [int(row["messageID"]) for row in rows]


def test_what_waits_is_told_in_its_order_with_its_properties(house: House) -> None:
    setting = house.setting()
    long = "x" * 400
    for number in (1, 2):
        message = Message(
            body=Typed("string", "b"),
            message_id=Typed("string", f"m-{number}"),
            properties={
                "tenant": Typed("string", "acme"),
                "long": Typed("string", long),
                "n": Typed("int", number),
            },
        )
        house.publisher.publish([Outgoing(setting.address, message)])
    eventually(lambda: house.figures(setting).messages == 2)
    rows = waiting_messages.first_waiting(house.management, setting.key)
    assert [row["userID"] for row in rows] == ["ID:m-1", "ID:m-2"]
    assert [row["n"] for row in rows] == [1, 2]
    assert rows[0]["long"] == f"{'x' * 256}, + 144 more"
    assert ids(rows) == sorted(ids(rows))


def test_names_of_the_broker_win_over_properties_of_the_same_name(house: House) -> None:
    """Or a producer could have another message acted upon."""
    setting = house.setting()
    hostile = {
        "messageID": Typed("long", 1),
        "userID": Typed("string", "ID:other"),
        "priority": Typed("int", 0),
    }
    message = Message(
        body=Typed("string", "b"), message_id=Typed("string", "own"), priority=7, properties=hostile
    )
    house.publisher.publish([Outgoing(setting.address, message)])
    eventually(lambda: house.figures(setting).messages == 1)
    (row,) = waiting_messages.first_waiting(house.management, setting.key)
    assert (row["userID"], row["priority"]) == ("ID:own", 7)
    assert waiting_messages.send_to_dead_letters(house.management, setting.key, 1) is False
    assert waiting_messages.send_to_dead_letters(house.management, setting.key, row["messageID"]) is True


def test_no_more_is_told_of_what_waits_than_its_first_messages(house: House) -> None:
    setting = house.setting()
    house.publish(setting.address, *map(str, range(waiting_messages.FIRST + 30)))
    eventually(lambda: house.figures(setting).messages == waiting_messages.FIRST + 30)
    assert len(waiting_messages.first_waiting(house.management, setting.key)) == waiting_messages.FIRST


def test_more_delayed_messages_than_can_be_told_are_not_asked_for(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    setting = house.setting(delay=HOUR)
    fail(house, setting, "a", "b")
    assert len(ids(waiting_messages.delayed(house.management, setting.key))) == 2
    monkeypatch.setattr(waiting_messages, "LISTED", 1)
    assert waiting_messages.delayed(house.management, setting.key) is None


def test_a_delay_is_ended_for_one_and_for_all(house: House) -> None:
    setting = house.setting(delay=HOUR)
    fail(house, setting, "a", "b", "c")
    one = ids(waiting_messages.delayed(house.management, setting.key))[0]
    waiting_messages.deliver_now(house.management, setting.key, one)
    waiting_messages.deliver_now(house.management, setting.key, one)
    eventually(lambda: house.figures(setting).scheduled == 2)
    assert ids(waiting_messages.first_waiting(house.management, setting.key)) == [one]
    waiting_messages.deliver_all_now(house.management, setting.key)
    eventually(lambda: house.figures(setting).scheduled == 0)
    _, owner = house.consume(setting)
    got = [owner.got() for _ in "abc"]
    assert sorted(each.text for each in got) == ["a", "b", "c"]
    assert {each.count for each in got} == {1}


@pytest.mark.parametrize("delayed", [True, False])
def test_a_message_sent_to_the_dead_letters_is_a_letter_like_any_other(house: House, delayed: bool) -> None:
    setting = house.setting(delay=HOUR)
    if delayed:
        fail(house, setting, "a", "b")
        rows = waiting_messages.delayed(house.management, setting.key)
    else:
        house.publish(setting.address, "a", "b")
        eventually(lambda: house.figures(setting).messages == 2)
        rows = waiting_messages.first_waiting(house.management, setting.key)
    number = ids(rows)[0]
    assert waiting_messages.send_to_dead_letters(house.management, setting.key, number) is True
    (letter,) = house.until_dead(setting, 1)
    assert (orig_id(letter), orig_queue(letter)) == (number, setting.key)
    assert number in [orig_id(each) for each in house.look(DLA, "DLQ.feed")]
    assert waiting_messages.send_to_dead_letters(house.management, setting.key, number) is False
    assert house.figures(setting).messages == 1


@pytest.mark.parametrize("delayed", [True, False])
def test_a_message_is_held_back_and_released_to_its_own_subscription_only(
    house: House, delayed: bool
) -> None:
    setting = house.setting(delay=HOUR)
    other = house.setting(address=setting.address, delay=HOUR)
    held = hold_queue(setting.key)
    apply(house.management, hold_topology(setting.key, DLA))
    if delayed:
        fail(house, setting, "a", "b")
        number = ids(waiting_messages.delayed(house.management, setting.key))[0]
    else:
        house.publish(setting.address, "a", "b")
        eventually(lambda: house.figures(setting).messages == 2)
        number = ids(waiting_messages.first_waiting(house.management, setting.key))[0]
    added = house.figures(other).added
    assert waiting_messages.move(house.management, setting.key, number, held) is True
    assert waiting_messages.move(house.management, setting.key, number, held) is False
    eventually(lambda: house.figures(setting).messages == 1)
    (row,) = waiting_messages.first_waiting(house.management, held)
    assert (row["_AMQ_ORIG_MESSAGE_ID"], row["_AMQ_ORIG_QUEUE"]) == (number, setting.key)
    assert waiting_messages.move(house.management, held, row["messageID"], setting.key) is True
    eventually(lambda: house.figures(setting).messages == 2)
    assert waiting_messages.first_waiting(house.management, held) == []
    assert house.figures(other).added == added


def test_what_is_in_delivery_is_told_with_the_server_and_cannot_be_acted_upon(house: House) -> None:
    setting = house.setting()
    house.publish(setting.address, "a", "b", "c")
    eventually(lambda: house.figures(setting).messages == 3)
    before = time.time() - 5
    _, owner = house.consume(setting, window=2)
    owner.got(), owner.got()
    told = waiting_messages.in_delivery(house.management, setting.key)
    assert told is not None
    (held,) = told
    assert server_of(str(held.consumer["clientID"])) == SERVER
    assert len(held.rows) == 2 == int(held.consumer["messagesInTransit"])
    assert int(held.consumer["lastDeliveredTime"]) / 1000 > before
    apply(house.management, hold_topology(setting.key, DLA))
    number = ids(list(held.rows))[0]
    assert waiting_messages.send_to_dead_letters(house.management, setting.key, number) is False
    assert waiting_messages.move(house.management, setting.key, number, hold_queue(setting.key)) is False
    waiting_messages.deliver_now(house.management, setting.key, number)
    assert house.figures(setting).messages == 3


def test_nothing_is_held_where_there_is_no_hold_queue(house: House) -> None:
    setting = house.setting()
    house.publish(setting.address, "a")
    eventually(lambda: house.figures(setting).messages == 1)
    number = ids(waiting_messages.first_waiting(house.management, setting.key))[0]
    with pytest.raises(ManagementFailed):
        waiting_messages.move(house.management, setting.key, number, hold_queue(setting.key))
    assert house.figures(setting).messages == 1


def test_a_hold_queue_takes_nothing_by_itself_and_goes_only_when_it_is_empty(house: House) -> None:
    setting = house.setting()
    steps = hold_topology(setting.key, DLA)
    apply(house.management, steps)
    assert differences(house.management, steps) == []
    house.publish(setting.address, "a")
    eventually(lambda: house.figures(setting).messages == 1)
    (row,) = waiting_messages.first_waiting(house.management, setting.key)
    waiting_messages.move(house.management, setting.key, row["messageID"], hold_queue(setting.key))
    eventually(lambda: house.figures(setting).messages == 0)
    house.management.call("queue.DLQ.feed", "removeAllMessages")
    with pytest.raises(ManagementFailed, match="holds 1"):
        remove_setting(house.management, setting.key)
    house.management.call(f"queue.{hold_queue(setting.key)}", "removeAllMessages")
    remove_setting(house.management, setting.key)
    options = json.dumps({"field": "name", "operation": "CONTAINS", "value": setting.key})
    assert json.loads(house.management.call("broker", "listQueues", options, 1, 10))["data"] == []


def test_why_nothing_is_moved_by_count_out_of_a_subscription(real: RealHouse) -> None:
    """The broker takes every delayed message out and forgets those above the count, until it is restarted."""
    setting = real.setting(delay=HOUR)
    apply(real.management, hold_topology(setting.key, DLA))
    fail(real, setting, "a", "b", "c")
    real.management.call(f"queue.{setting.key}", "moveMessages", 500, "", hold_queue(setting.key), False, 1)
    eventually(lambda: real.figures(setting).messages == 0)
    assert real.management.attribute(f"queue.{hold_queue(setting.key)}", "MessageCount") == 1
