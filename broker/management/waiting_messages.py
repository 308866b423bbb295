"""Messages of a subscription before they are handled: what the broker tells of them, and what can be done to
one.

Nothing here asks for more than a bounded answer, and nothing moves by count: `moveMessages` with a count and
`changeMessagePriority` take delayed messages out of the queue and forget those that they do not move, until
the broker is restarted (docs/explanation/broker.md).
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from broker.port import Management

# Of these the broker tells all at once or nothing, half a kilobyte and more for each: above it they are only
# counted.
LISTED = 1000
# Of what waits the broker tells the first so many (its management-browse-page-size).
FIRST = 200
CONSUMERS = 1000

# A message as the broker writes it: its own names, and the properties among them, texts cut at 256
# characters.
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Delivering:
    """What one consumer holds. `consumer` is the broker's row of it, empty when it has gone meanwhile."""

    consumer: Mapping[str, Any]
    rows: tuple[Row, ...]


def first_waiting(management: Management, queue: str) -> list[Row]:
    """The first FIRST messages that can be delivered now, in the order of the queue."""
    return _rows(management.call(f"queue.{queue}", "listMessagesAsJSON", ""))


def delayed(management: Management, queue: str) -> list[Row] | None:
    """All that wait for their redelivery, in no order; None: they are more than LISTED. When they are due,
    and how often they failed, the broker does not tell."""
    if int(management.attribute(f"queue.{queue}", "ScheduledCount")) > LISTED:
        return None
    return _rows(management.call(f"queue.{queue}", "listScheduledMessagesAsJSON"))


def in_delivery(management: Management, queue: str) -> list[Delivering] | None:
    """What consumers hold unsettled, by consumer; None: they are more than LISTED."""
    if int(management.attribute(f"queue.{queue}", "DeliveringCount")) > LISTED:
        return None
    told = json.loads(management.call(f"queue.{queue}", "listDeliveringMessagesAsJSON") or "[]")
    options = json.dumps({"field": "queue", "operation": "EQUALS", "value": queue})
    listed = json.loads(management.call("broker", "listConsumers", options, 1, CONSUMERS))["data"]
    consumers = {each["session"]: each for each in listed}
    return [
        Delivering(_consumer_of(str(each["consumerName"]), consumers), tuple(each["elements"]))
        for each in told
        if each["elements"]
    ]


def _consumer_of(name: str, consumers: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Any]:
    """`name` holds `[id=connection:session:number, …`."""
    parts = name.partition("[id=")[2].partition(",")[0].split(":")
    return consumers.get(parts[1], {}) if len(parts) == 3 else {}


def _rows(text: str | None) -> list[Row]:
    rows: list[Row] = json.loads(text or "[]")
    return rows


# -- one message, by the broker's id of it in this queue -----------------------------------------------------
# An id names one message in one queue and never comes again, so doing it twice does nothing the second time.


def deliver_now(management: Management, queue: str, number: int) -> None:
    """Ends the delay of a message. Of one that is not delayed, or not there, nothing happens."""
    management.call(f"queue.{queue}", "deliverScheduledMessage", number)


def deliver_all_now(management: Management, queue: str) -> None:
    """Ends the delay of every message of the queue."""
    management.call(f"queue.{queue}", "deliverScheduledMessages", "")


def send_to_dead_letters(management: Management, queue: str, number: int) -> bool:
    """Sends a message to the dead-letter address as if its attempts were over; not one that is in
    delivery."""
    return bool(management.call(f"queue.{queue}", "sendMessageToDeadLetterAddress", number))


def move(management: Management, queue: str, number: int, target: str) -> bool:
    """Moves a message, delayed or not, to another queue, where it waits without a delay and with all attempts
    before it; not one that is in delivery. Raises ManagementFailed when there is no such target."""
    return bool(management.call(f"queue.{queue}", "moveMessage", number, target))


def move_all(management: Management, queue: str, target: str) -> None:
    """Moves what waits there, delayed or not, one by one and in its order. What consumers hold stays. Raises
    ManagementFailed."""
    deliver_all_now(management, queue)
    while some := first_waiting(management, queue):
        gone = [move(management, queue, int(row["messageID"]), target) for row in some]
        if not any(gone):
            return  # consumers took them first
