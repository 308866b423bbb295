"""Which dead-letter queues there are, asked rarely: a queue that is there stays, one that is not may come."""

import time

from broker.catch_all import keys_of
from broker.port import Management
from broker.rows import find
from contract.properties import UNKNOWN, dead_letter_queue

# Seconds for which an answer holds.
SEEN_HOLDS = 60.0
MISSED_HOLDS = 1.0


class QueueNames:
    def __init__(self, management: Management) -> None:
        self._management = management
        self._seen: dict[str, float] = {}
        self._missed: dict[str, float] = {}
        self._left_out: frozenset[str] | None = None
        self._left_out_until = 0.0

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

    def unknown_leaves_out(self, key: str) -> bool:
        """Whether the catch-all's filter names the key: then it did not take that setting's letters."""
        now = time.monotonic()
        if now >= self._left_out_until:
            found = find(self._management, "listQueues", dead_letter_queue(UNKNOWN))
            self._left_out = keys_of(found["filter"]) if found else None
            self._left_out_until = now + MISSED_HOLDS
        return self._left_out is not None and key in self._left_out
