"""The dead-letter queues at the broker: which letters lie there, and moving chosen ones back."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.conf import settings

from agents.services.broker import management
from broker.amqp_adapter import AmqpBrowser
from broker.errors import AddressUnknown, BrokerUnavailable, ManagementFailed
from broker.letters import SLICE, move_letters
from broker.port import Browser, Management
from broker.rows import find
from contract.properties import dead_letter_queue
from dlq.reading import origin_of

# More than any queue holds: a walk ends where the queue does.
EVERYTHING = 1_000_000_000


class WalkIncomplete(BrokerUnavailable):
    """A walk saw fewer letters than the broker counts: what it did not see may be there. Temporary: walk again."""


@dataclass(frozen=True, slots=True)
class LetterQueues:
    management: Management
    browser: Browser
    dla: str

    def node_id(self) -> str:
        return str(self.management.attribute("broker", "NodeID"))

    def count(self, key: str) -> int:
        """The broker's exact count of the setting's dead letters. Raises AddressUnknown: there is no such queue."""
        queue = dead_letter_queue(key)
        try:
            return int(self.management.attribute(f"queue.{queue}", "MessageCount"))
        except ManagementFailed as error:
            if find(self.management, "listQueues", queue) is None:
                raise AddressUnknown(f"the broker has no queue {queue}") from error
            raise

    def walk(self, key: str) -> frozenset[int]:
        """The ids of all letters in the dead-letter queue of a setting. Raises WalkIncomplete, BrokerError."""
        before, seen, numbers = self.count(key), 0, set()
        for browsed in self.browser.browse(self.dla, dead_letter_queue(key), limit=EVERYTHING):
            seen += 1
            number = origin_of(browsed.message).message_id if browsed.message else None
            if number is not None:
                numbers.add(number)
        counted = min(before, self.count(key))
        if seen < counted:
            raise WalkIncomplete(f"a walk of {dead_letter_queue(key)} saw {seen} of {counted} letters")
        return frozenset(numbers)

    def move_back(self, key: str, numbers: Sequence[int]) -> int:
        """Moves these letters of a setting to its subscription queue and nowhere else; how many, says the broker.

        Never `retryMessages`: that sends an AMQP letter to every subscription of its address. Never with a count of
        0, which means all. Raises ManagementFailed (no such queue, nothing moved), BrokerTimeout (perhaps moved).
        """
        if not 0 < len(numbers) <= SLICE or min(numbers) < 0:
            raise ValueError(f"a move names 1 to {SLICE} letters by their ids")
        return move_letters(self.management, dead_letter_queue(key), numbers, key)


def letter_queues() -> LetterQueues:
    """Those of the broker in the settings."""
    return LetterQueues(management(), AmqpBrowser(settings.MA_BROKER_AMQP), settings.MA_DLA_ADDRESS)
