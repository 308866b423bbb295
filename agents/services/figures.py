"""The broker's own figures of a setting's queues, exact at the moment they were asked for."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from agents.models import LaunchSetting
from broker import letters
from console.broker import management
from contract.properties import dead_letter_queue


@dataclass(frozen=True, slots=True)
class QueueFigures:
    """`waiting` can be delivered now, `delayed` waits for its redelivery, `in_delivery` is at a KMA."""

    waiting: int
    delayed: int
    in_delivery: int
    consumers: int
    dead: int
    at: datetime


def queue_figures(setting: LaunchSetting, now: datetime) -> QueueFigures:
    """Raises BrokerError: not reachable, or the queues are not there yet."""
    broker = management()
    subscription, dead = f"queue.{setting.key}", f"queue.{dead_letter_queue(setting.key)}"
    names = ("MessageCount", "ScheduledCount", "DeliveringCount", "ConsumerCount")
    total, delayed, in_delivery, consumers = map(int, broker.attributes(subscription, *names))
    return QueueFigures(
        # They are read one after the other: never show less than nothing.
        waiting=max(0, total - delayed - in_delivery),
        delayed=delayed,
        in_delivery=in_delivery,
        consumers=consumers,
        dead=int(broker.attribute(dead, "MessageCount")),
        at=now,
    )


def figures_of_all(settings: Collection[LaunchSetting], now: datetime) -> dict[str, QueueFigures]:
    """By key, of those whose queues are there. The broker tells of all its queues in a few answers, where
    each setting alone would take five. Raises BrokerError: not reachable."""
    queues = letters.figures_of_all(management())
    found = {}
    for setting in settings:
        subscription, dead = queues.get(setting.key), queues.get(dead_letter_queue(setting.key))
        if subscription is not None and dead is not None:
            found[setting.key] = QueueFigures(
                waiting=subscription.waiting,
                delayed=subscription.scheduled,
                in_delivery=subscription.delivering,
                consumers=subscription.consumers,
                dead=dead.messages,
                at=now,
            )
    return found
