"""How long a delivery of the mode CLIENT waits for its answer: the setting's timeout, or the message's
own."""

import heapq
from collections.abc import Container
from typing import Any

LONGEST = 10**9  # seconds: longer is as good as without end, and instants have their bounds


class NoSeconds(ValueError):
    """The message's property is no positive integer."""


def own_seconds(value: Any) -> int:
    """What the property says. Text of digits counts as the integer it spells, as JMS reads such a property
    and as STOMP producers can only write it. Raises NoSeconds."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
        raise NoSeconds(f"{str(value)[:100]!r} is no number of seconds, whole and more than 0")
    return min(value, LONGEST)


class Dues:
    """When deliveries have waited long enough, in monotonic seconds. Those that were answered stay until
    then."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, str]] = []

    def add(self, due: float, acknowledgement: str) -> None:
        heapq.heappush(self._heap, (due, acknowledgement))

    def over(self, now: float) -> list[str]:
        found = []
        while self._heap and self._heap[0][0] <= now:
            found.append(heapq.heappop(self._heap)[1])
        return found

    def keep(self, acknowledgements: Container[str]) -> None:
        """Forgets all but these."""
        self._heap = [one for one in self._heap if one[1] in acknowledgements]
        heapq.heapify(self._heap)

    def __len__(self) -> int:
        return len(self._heap)

    def patience(self, now: float) -> float:
        """Seconds until the next is over."""
        return max(0.0, self._heap[0][0] - now) if self._heap else float("inf")
