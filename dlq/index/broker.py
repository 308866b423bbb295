"""The dead-letter queues at the broker: which dead letters lie there, their figures, and moving chosen
ones."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from django.conf import settings

from broker.amqp.browser import AmqpBrowser
from broker.management.dead_letters import NAMED, move_dead_letters, move_id_range
from broker.port import Browser, Management
from console.broker import management
from dlq.index.queries import FEED_QUEUE
from dlq.index.walk import checked_walk, message_count, numbers_in_delivery, queue_numbers
from dlq.index.walk_ids import number_of
from dlq.replay.rules.slices import Figures


@dataclass(frozen=True, slots=True)
class LetterQueues:
    management: Management
    browser: Browser
    dla: str

    def node_id(self) -> str:
        return str(self.management.attribute("broker", "NodeID"))

    def figures(self, queue: str) -> Figures:
        """Nearly of one moment: a dead letter that dies between the two questions is in the count only.
        Raises AddressUnknown: there is no such queue."""
        names = ("MessagesAdded", "MessageCount", "ConsumerCount")
        added, count, consumers = queue_numbers(self.management, queue, *names)
        return Figures(count=count, added=added, consumers=consumers)

    def feed_is_empty(self) -> bool:
        """Returns whether the index knows of every death so far."""
        return message_count(self.management, FEED_QUEUE) == 0

    def numbers(self, queue: str) -> Iterator[int]:
        """The ids of all dead letters of a queue, one after the other. Raises WalkIncomplete at the end,
        BrokerError."""
        for piece in checked_walk(queue, self.dla, self.management, self.browser):
            yield from (number for number in map(number_of, piece) if number is not None)

    def in_delivery(self, queue: str) -> frozenset[int]:
        """The ids of dead letters that consumers hold unsettled; none where these are too many to be listed.
        Raises BrokerError."""
        return numbers_in_delivery(self.management, queue)

    def move_ids(self, source: str, numbers: Sequence[int], target: str) -> int:
        """Moves these dead letters, and no other one, to a queue that alone gets them; how many, says the
        broker.

        Never `retryMessages`: that sends an AMQP dead letter to every subscription of its address. Never with
        a count of 0, which means all. Raises ManagementFailed (no such queue, nothing moved), BrokerTimeout
        (perhaps moved).
        """
        if not 0 < len(numbers) <= NAMED or min(numbers) < 0:
            raise ValueError(f"a move takes 1 to {NAMED} message ids")
        return move_dead_letters(self.management, source, numbers, target)

    def move_between(self, source: str, first: int, last: int, target: str, count: int) -> int:
        """The same with at most `count` dead letters whose ids lie between the two, both inclusive."""
        if not 0 <= first <= last:
            raise ValueError("a move takes a range of ids")
        return move_id_range(self.management, source, first, last, target, count)


def letter_queues() -> LetterQueues:
    """Those of the broker in the settings."""
    return LetterQueues(management(), AmqpBrowser(settings.MA_BROKER_AMQP), settings.MA_DLA_ADDRESS)
