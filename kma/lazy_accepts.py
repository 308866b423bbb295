"""Acceptances of the mode DUPS_OK: gathered, and told to the broker together.

Killed before that, the messages of the batch come back and are handled again; nothing else of them is kept
here.
"""

import time

from broker.port import Settle
from contract.messages import DesiredRun, Mode


class LazyAccepts:
    """One thread, the run's. In other modes nothing waits here."""

    def __init__(self, desired: DesiredRun) -> None:
        self._tags: list[int] = []
        self._since = 0.0
        self.stopping = False
        self.change(desired)

    def change(self, desired: DesiredRun) -> None:
        lazy = desired.mode is Mode.DUPS_OK
        self._most = desired.dups_ok_messages if lazy else 1
        self._seconds = desired.dups_ok_seconds if lazy else 0.0

    def add(self, tag: int) -> None:
        if not self._tags:
            self._since = time.monotonic()
        self._tags.append(tag)

    @property
    def due(self) -> bool:
        tags = self._tags
        return bool(tags) and (self.stopping or len(tags) >= self._most or not self.patience())

    def patience(self) -> float:
        """Seconds until the oldest has waited long enough."""
        return max(0.0, self._since + self._seconds - time.monotonic()) if self._tags else float("inf")

    def widened(self, credit: int) -> int:
        """Deliveries that may be unsettled at a time: those that wait here keep no handler busy."""
        return credit and credit + len(self._tags)

    def take(self) -> list[tuple[int, Settle]]:
        tags, self._tags = self._tags, []
        return [(tag, Settle.ACCEPT) for tag in tags]
