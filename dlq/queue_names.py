"""Which dead-letter queues there are, asked rarely: a queue that is there stays, one that is not may come."""

import time

from broker.port import Management
from broker.rows import find

# Seconds for which an answer holds.
SEEN_HOLDS = 60.0
MISSED_HOLDS = 1.0


class QueueNames:
    def __init__(self, management: Management) -> None:
        self._management = management
        self._seen: dict[str, float] = {}
        self._missed: dict[str, float] = {}

    def has(self, queue: str) -> bool:
        """Whether the queue exists. Raises BrokerUnavailable: nobody knows."""
        now = time.monotonic()
        if now < self._seen.get(queue, 0.0):
            return True
        if now < self._missed.get(queue, 0.0):
            return False
        if find(self._management, "listQueues", queue) is None:
            self._missed[queue] = now + MISSED_HOLDS
            return False
        self._seen[queue] = now + SEEN_HOLDS
        return True
