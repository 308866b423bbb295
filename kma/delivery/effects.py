"""What follows from the ends of handlings, and acceptances of the mode DUPS_OK, which are told together.

Killed before these are told, the messages come back and are handled again; nothing else of them is kept here.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from broker.port import Settle
from contract.messages import DesiredRun, Mode
from kma.spool.records import New


@dataclass(slots=True)
class Batch:
    """To the disk first (`records`, `attempts`, `forget`, and `committing`: ids of deliveries whose commit is
    next), then to the broker (`settlements`), then what comes `after`, then free the slots."""

    records: list[New] = field(default_factory=list)
    attempts: list[tuple[str, str, int]] = field(default_factory=list)
    forget: list[tuple[str, str]] = field(default_factory=list)
    settlements: list[tuple[int, Settle]] = field(default_factory=list)
    slots: list[int] = field(default_factory=list)
    committing: list[str] = field(default_factory=list)
    after: list[Callable[[], None]] = field(default_factory=list)

    @property
    def must_be_stored(self) -> bool:
        return bool(self.records or self.attempts or self.forget or self.committing)

    def __bool__(self) -> bool:
        return bool(self.settlements or self.slots or self.after or self.must_be_stored)


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
