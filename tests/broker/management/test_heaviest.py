"""Which queue takes most of the disk."""

from broker.management.queues import heaviest_queue
from tests.broker.houses import House


def test_the_heaviest_queue_is_that_with_most_bytes_not_with_most_messages(house: House) -> None:
    """Other tests leave messages on the same broker: these have more messages, and more bytes."""
    many, large = house.setting(), house.setting()
    house.publish(many.address, *["x"] * 400)
    house.publish(large.address, *["x" * 100_000] * 200)
    found = heaviest_queue(house.management)
    assert found is not None
    assert (found.queue, found.messages) == (large.key, 200) and found.size > 20_000_000
