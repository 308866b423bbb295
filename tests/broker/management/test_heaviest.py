"""Which queue takes most of the disk."""

from broker.management.queues import heaviest_queue
from tests.broker.houses import House


def test_the_heaviest_queue_is_that_with_most_bytes_not_with_most_messages(house: House) -> None:
    """Five queues are asked. Of those that other tests leave on the broker, two have more messages."""
    many, large = house.setting(), house.setting()
    house.publish(many.address, *["x"] * 1_000)
    house.publish(large.address, *["x" * 25_000] * 900)
    found = heaviest_queue(house.management)
    assert found is not None
    assert (found.queue, found.messages) == (large.key, 900) and found.size > 20_000_000
