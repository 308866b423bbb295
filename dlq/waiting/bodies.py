"""Heads of the bodies of messages that wait: management tells none, a short walk over AMQP does."""

from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice

from django.conf import settings
from django.utils import timezone

from agents.models import LaunchSetting
from broker import waiting
from broker.amqp_adapter import AmqpBrowser
from broker.errors import BrokerError
from broker.port import Browser, Management
from console.broker import management
from contract.properties import HOLD, dead_letter_queue
from dlq.masking import Masks
from dlq.models.waiting import WaitingPart
from dlq.reading import letter_row
from dlq.waiting.asking import queue_of
from dlq.waiting.rows import WaitingMessage

# Bytes that the messages of a walk may have on average, and all together: it brings them whole.
LARGEST_AVERAGE = 64 * 1024
MOST_BYTES = 16 * 1024 * 1024
# Seconds for a step of the walk: a page waits for it.
PATIENCE = 1.0


@dataclass(frozen=True, slots=True)
class Heads:
    """Masked for one person."""

    management: Management
    browser: Browser
    masks: Masks

    def of(
        self, setting: LaunchSetting, part: str, messages: Sequence[WaitingMessage], limit: int
    ) -> dict[int, str]:
        """{broker's id: head of the body} of the first `limit` messages, of those of which it is certain.

        Nothing in a walk names a message by the broker's id. Where the queue's head stood still during the
        walk, the order tells; else the producer's id, where only one message has it. None of large messages.
        """
        queue = queue_of(setting.key, part)
        address = HOLD if part == WaitingPart.HELD else setting.subscribed.name
        try:
            if self._average(queue) > LARGEST_AVERAGE:
                return {}
            with closing(self._walk(setting.key, address, queue)) as walk:
                walked = list(islice(walk, limit))
            after = [int(row["messageID"]) for row in waiting.first_waiting(self.management, queue)][:limit]
        except BrokerError:
            return {}
        first = list(messages[:limit])
        if after == [message.number for message in first] and len(walked) == len(first):
            return {message.number: body for message, (_id, body) in zip(first, walked, strict=True)}
        return _by_id(messages, walked)

    def _average(self, queue: str) -> float:
        size, count = self.management.attributes(f"queue.{queue}", "PersistentSize", "MessageCount")
        return int(size) / max(1, int(count))

    def _walk(self, key: str, address: str, queue: str) -> Generator[tuple[str, str]]:
        """(the producer's id, the head of the body); ends early where messages are large."""
        now, size = timezone.now(), 0
        with closing(self.browser.walk(address, queue)) as pieces:  # type: ignore[type-var]  # a generator, if real
            for piece in pieces:
                for encoded in piece:
                    row = letter_row(encoded, "", now)
                    row.setting_key, row.queue = key, dead_letter_queue(key)
                    yield row.message_id, self.masks.head_of_body(row)
                size += sum(map(len, piece))
                if size > MOST_BYTES:
                    return


def _by_id(messages: Sequence[WaitingMessage], walked: Sequence[tuple[str, str]]) -> dict[int, str]:
    """A message may have gone, and another of the same id come: only ids that one message has on both
    sides."""
    there = Counter(message.message_id for message in messages)
    seen = Counter(own for own, _body in walked)
    bodies = {own: body for own, body in walked if own and seen[own] == 1 == there[own]}
    return {
        message.number: bodies[message.message_id] for message in messages if message.message_id in bodies
    }


def heads_for(masks: Masks) -> Heads:
    return Heads(management(), AmqpBrowser(settings.MA_BROKER_AMQP, PATIENCE), masks)
