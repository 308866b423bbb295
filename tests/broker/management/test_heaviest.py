"""Which queue takes most of the disk."""

from broker.management.queues import heaviest_queue
from tests.broker.houses import House


def test_the_heaviest_queue_is_that_with_most_bytes_not_with_most_messages(house: House) -> None:
    many, large = house.setting(), house.setting()
    house.publish(many.address, *["x"] * 20)
    house.publish(large.address, *["x" * 1_000_000] * 3)
    found = heaviest_queue(house.management)
    assert found is not None
    assert (found.queue, found.messages) == (large.key, 3) and found.size > 3_000_000
