"""Wanted against found: idempotent, in an order that loses nothing, read back."""

import json
from uuid import uuid4

import pytest

from broker.management.desired_topology import Queue, Step, base_topology, setting_topology
from broker.management.queues import every, find, queue_figures
from broker.management.topology import Difference, apply, differences, remove_setting
from broker.port import AddressUnknown, Management, ManagementFailed, Settle
from contract.names import FEED
from contract.redelivery import RedeliveryPolicy
from tests.broker.houses import DLA, House, numbers

POLICY = RedeliveryPolicy(
    max_attempts=4, delay=1000, multiplier=1.5, max_delay=5000, collision_avoidance=0.25
)


def steps(key: str, policy: RedeliveryPolicy = POLICY, exclusive: bool = True) -> list[Step]:
    return setting_topology(key, f"test.{key}", policy, exclusive, DLA)


def new_key() -> str:
    return f"topology-{next(numbers)}-{uuid4().hex[:8]}"


def index_everything(house: House) -> None:
    """What the process that follows the feed does."""
    house.management.call(f"queue.DLQ.{FEED}", "removeAllMessages")


def test_a_setting_is_provisioned_once_and_then_found_as_wanted(house: House) -> None:
    wanted = steps(new_key())
    assert differences(house.management, wanted) != []
    assert apply(house.management, wanted) != []
    assert differences(house.management, wanted) == []
    assert apply(house.management, wanted) == []


def test_the_dead_letter_queue_is_first_and_the_subscription_last() -> None:
    wanted = steps("orders")
    assert wanted[0] == Queue(
        "DLQ.orders", DLA, "_AMQ_ORIG_QUEUE = 'orders' OR _AMQ_ORIG_QUEUE = 'orders.ahead'"
    )
    assert wanted[-1] == Queue("orders", "test.orders", exclusive=True)


def test_a_changed_wish_is_applied_and_named(house: House) -> None:
    key = new_key()
    apply(house.management, steps(key))
    changed = steps(key, RedeliveryPolicy(max_attempts=-1, delay=0, multiplier=1.0), exclusive=False)
    found = [str(difference) for difference in apply(house.management, changed)]
    assert f"queue {key}: exclusive: expected false, found true" in found
    assert f"address test.{key}: maxDeliveryAttempts: expected -1, found 4" in found
    assert differences(house.management, changed) == []


def test_a_filter_that_somebody_changed_is_found_and_mended_without_losing_the_fence(house: House) -> None:
    key = new_key()
    apply(house.management, steps(key))
    wrong = {
        "name": key,
        "address": f"test.{key}",
        "routing-type": "MULTICAST",
        "durable": True,
        "exclusive": True,
    }
    house.management.call("broker", "updateQueue", json.dumps(wrong | {"filter-string": "1 = 0"}))
    assert differences(house.management, steps(key)) == [Difference(f"queue {key}: filter", "", "1 = 0")]
    apply(house.management, steps(key))
    assert house.management.attribute(f"queue.{key}", "Exclusive") is True
    assert house.management.attribute(f"queue.{key}", "Filter") in (None, "")


def test_a_paused_queue_is_a_difference(house: House) -> None:
    key = new_key()
    apply(house.management, steps(key))
    house.management.call(f"queue.{key}", "pause")
    assert [str(each) for each in differences(house.management, steps(key))] == [
        f"queue {key}: paused: expected false, found true"
    ]
    apply(house.management, steps(key))
    assert differences(house.management, steps(key)) == []


def test_a_queue_of_that_name_on_another_address_is_refused_and_left_alone(house: House) -> None:
    key = new_key()
    apply(house.management, steps(key))
    elsewhere = setting_topology(key, f"elsewhere.{key}", POLICY, True, DLA)
    with pytest.raises(ManagementFailed, match="address"):
        apply(house.management, elsewhere)
    assert differences(house.management, steps(key)) == []


def test_the_base_is_as_wanted_after_settings_came(house: House) -> None:
    apply(house.management, steps(new_key()))
    assert apply(house.management, base_topology(DLA)) == []


def test_a_setting_whose_queues_are_empty_can_be_removed_again_and_again(house: House) -> None:
    key = new_key()
    apply(house.management, steps(key))
    index_everything(house)
    for _ in range(2):
        remove_setting(house.management, key)
    for name in (key, f"DLQ.{key}"):
        with pytest.raises(ManagementFailed):
            house.management.attribute(f"queue.{name}", "MessageCount")


def test_attributes_come_together_in_the_order_of_the_question(house: House) -> None:
    setting = house.setting()
    index_everything(house)
    house.publish(setting.address, "one", "two")
    queue = f"queue.{setting.key}"
    assert house.management.attributes(queue, "MessageCount", "ConsumerCount", "MessagesAdded") == [2, 0, 2]
    with pytest.raises(ManagementFailed):
        house.management.attributes(queue, "MessageCount", "NobodyKnowsThis", "ConsumerCount")
    assert house.management.attributes(queue, "ConsumerCount", "MessageCount") == [0, 2], (
        "an answer of before"
    )


def test_a_queue_that_holds_messages_or_letters_or_a_consumer_is_not_removed(house: House) -> None:
    setting = house.setting()
    index_everything(house)
    house.publish(setting.address, "waits")
    with pytest.raises(ManagementFailed, match="holds 1 messages"):
        remove_setting(house.management, setting.key)
    consumer, owner = house.consume(setting)
    consumer.settle([(owner.got().tag, Settle.REJECT)])
    house.until_dead(setting, 1)
    with pytest.raises(ManagementFailed, match="to be indexed"):
        remove_setting(house.management, setting.key)
    index_everything(house)
    with pytest.raises(ManagementFailed, match="consumers"):
        remove_setting(house.management, setting.key)
    consumer.stop()
    with pytest.raises(ManagementFailed, match=setting.dead):
        remove_setting(house.management, setting.key)
    assert house.figures(setting).messages == 0


@pytest.mark.parametrize("counted", ["0", "-115"])
def test_a_queue_that_is_counted_too_low_is_looked_into(
    house: House, monkeypatch: pytest.MonkeyPatch, counted: str
) -> None:
    """As after a purge of many, which the broker counts too high."""
    setting = house.setting()
    index_everything(house)
    house.publish(setting.address, "waits")

    def miscounted(management: Management, operation: str, name: str) -> dict[str, str] | None:
        row = find(management, operation, name)
        return row and row | {"messageCount": counted}

    monkeypatch.setattr("broker.management.topology.find", miscounted)
    with pytest.raises(ManagementFailed, match=f"queue {setting.key} holds 1 messages"):
        remove_setting(house.management, setting.key)
    house.management.call(f"queue.{setting.key}", "removeAllMessages")
    remove_setting(house.management, setting.key)
    assert find(house.management, "listQueues", setting.key) is None


def test_figures_tell_what_waits_and_what_is_held(house: House) -> None:
    setting = house.setting(delay=60_000)
    house.publish(setting.address, *"abc")
    consumer, owner = house.consume(setting, window=2)
    consumer.settle([(owner.got().tag, Settle.FAIL)])
    owner.got()
    owner.got()
    figures = house.figures(setting)
    assert (figures.messages, figures.scheduled, figures.delivering, figures.waiting) == (3, 1, 2, 0)
    assert (figures.consumers, figures.added) == (1, 3)


def test_every_queue_is_listed_whatever_fits_in_one_answer(house: House) -> None:
    made = {house.setting().key for _ in range(3)}
    whole = [row["name"] for row in every(house.management, "listQueues")]

    assert made < set(whole)
    assert sorted(row["name"] for row in every(house.management, "listQueues", size=2)) == sorted(whole)


def test_figures_of_a_queue_that_is_not_there_are_refused(house: House) -> None:
    setting = house.setting()
    with pytest.raises(AddressUnknown):
        queue_figures(house.management, "nobody-made-this", setting.address)
    with pytest.raises(AddressUnknown):
        queue_figures(house.management, setting.key, "another.address")
