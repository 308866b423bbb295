"""The broker's own lists of its queues and addresses, and what it counts of a queue."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from broker.port import AddressUnknown, Management

# Rows per answer. For each the broker sorts all its queues, so rather few than short ones; a row has about a
# kilobyte.
PAGE = 1000


def find(management: Management, operation: str, name: str) -> dict[str, str] | None:
    """The broker's row of the queue (`listQueues`) or address (`listAddresses`) of exactly that name; all are
    text."""
    options = json.dumps({"field": "name", "operation": "EQUALS", "value": name})
    rows = json.loads(management.call("broker", operation, options, 1, 10))["data"]
    return next((row for row in rows if row["name"] == name), None)


def every(management: Management, operation: str, size: int = PAGE) -> Iterator[dict[str, str]]:
    """All rows, in pages; what is made or deleted meanwhile may be missed or come twice."""
    for page in range(1, 10_000):
        rows = json.loads(management.call("broker", operation, "", page, size))["data"]
        yield from rows
        if len(rows) < size:
            return


# -- figures -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class QueueFigures:
    """What the broker counts. `messages` contains `scheduled` (waiting for their redelivery) and
    `delivering`."""

    messages: int
    scheduled: int
    delivering: int
    consumers: int
    added: int
    acknowledged: int

    @property
    def waiting(self) -> int:
        return max(0, self.messages - self.scheduled - self.delivering)


def queue_figures(management: Management, queue: str, address: str) -> QueueFigures:
    """All of one moment. Raises AddressUnknown when the queue is not there."""
    found = find(management, "listQueues", queue)
    if found is None or found["address"] != address:
        raise AddressUnknown(f"the broker has no queue {queue} on {address}")
    return _figures(found)


def figures_of_all(management: Management) -> dict[str, QueueFigures]:
    """By the name of the queue. A few questions, whatever the broker holds."""
    return {row["name"]: _figures(row) for row in every(management, "listQueues")}


def _figures(row: Mapping[str, str]) -> QueueFigures:
    # Not below 0: the broker miscounts each message that it cannot turn into AMQP, until it is restarted.
    return QueueFigures(
        messages=max(0, int(row["messageCount"])),
        scheduled=max(0, int(row["scheduledCount"])),
        delivering=max(0, int(row["deliveringCount"])),
        consumers=int(row["consumerCount"]),
        added=int(row["messagesAdded"]),
        acknowledged=int(row["messagesAcked"]),
    )


# Older than any message: the producer named no time, and the broker counts from 1970.
_NO_AGE = 10 * 365 * 86_400.0


def oldest_age(management: Management, queue: str) -> float | None:
    """Returns how many seconds ago the first message that waits was made, by its producer's clock; None where
    none waits or its producer named no time. Raises BrokerError."""
    milliseconds = management.attribute(f"queue.{queue}", "FirstMessageAge")
    age = None if milliseconds is None else float(milliseconds) / 1000
    return None if age is None or age > _NO_AGE else max(0.0, age)


@dataclass(frozen=True, slots=True)
class HeavyQueue:
    """`size` in bytes on the disk."""

    queue: str
    messages: int
    size: int


# Of so many queues with most messages the sizes are asked for, each by a question of its own.
MOST_ASKED = 5


def heaviest_queue(management: Management) -> HeavyQueue | None:
    """Returns what takes most of the disk, of the queues with most messages; None where all are empty. Raises
    BrokerError."""
    filled = [(each.messages, queue) for queue, each in figures_of_all(management).items() if each.messages]
    found = [
        HeavyQueue(queue, messages, int(management.attribute(f"queue.{queue}", "PersistentSize")))
        for messages, queue in sorted(filled, reverse=True)[:MOST_ASKED]
    ]
    return max(found, key=lambda each: each.size, default=None)
