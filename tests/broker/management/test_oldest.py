"""How old the oldest message is that waits in a queue."""

from datetime import UTC, datetime, timedelta

import pytest

from broker.management.queues import oldest_age
from broker.port import ManagementFailed, Message, Outgoing
from contract.typed import Typed
from tests.broker.houses import House, Setting

HOUR = timedelta(hours=1)


def publish(house: House, setting: Setting, made: datetime | None) -> None:
    house.publisher.publish([Outgoing(setting.address, Message(Typed("string", "x"), created_at=made))])


def test_it_is_that_of_the_first_message_by_its_producers_clock(house: House) -> None:
    setting, now = house.setting(), datetime.now(UTC)
    assert oldest_age(house.management, setting.key) is None
    for ago in (HOUR, 3 * HOUR, timedelta(0)):
        publish(house, setting, now - ago)
    age = oldest_age(house.management, setting.key)
    assert age is not None and 3600 <= age < 2 * 3600


def test_a_producer_without_a_time_says_nothing_and_one_ahead_of_us_says_now(house: House) -> None:
    unknown, ahead = house.setting(), house.setting()
    publish(house, unknown, None)
    publish(house, ahead, datetime.now(UTC) + HOUR)
    assert oldest_age(house.management, unknown.key) is None
    assert oldest_age(house.management, ahead.key) == 0


def test_of_no_queue_there_is_none(house: House) -> None:
    with pytest.raises(ManagementFailed):
        oldest_age(house.management, "nowhere")
