"""What follows from the ends of handlings, as values, and acceptances of the mode DUPS_OK, which are told
together.

Rules say what must be done and do nothing themselves; kma/run/commit.py does it. Killed before acceptances
are told, their messages come back and are handled again; nothing else of them is kept here.
"""

import time
from dataclasses import dataclass, field

from broker.port import Outgoing, Settle
from contract.messages import DesiredRun, Mode
from contract.records import RecordRun
from kma.sdk.job import AgentQuestion, Reply
from kma.spool.records import New


@dataclass(slots=True)
class RunFacts:
    """What rules know of their run. `key`: its name in the spool. `desired` changes while it is alive."""

    run: RecordRun
    key: str
    desired: DesiredRun


@dataclass(frozen=True, slots=True, eq=False)
class Transaction:
    """The acceptance of a delivery together with what is sent. Who asked for it is asked once more before it
    is posted (`wants`): a connection may be lost in between, and its tags mean other deliveries then."""

    tag: int
    sends: tuple[Outgoing, ...] = ()


@dataclass(slots=True)
class Effects:
    """To the disk first (`records`, `attempts`, `forget`, and `committing`: ids of deliveries whose commit is
    next), then to the broker (`settlements`, `transactions`, `events`), then to agents (`replies`), then free
    the slots."""

    records: list[New] = field(default_factory=list)
    attempts: list[tuple[str, str, int]] = field(default_factory=list)
    forget: list[tuple[str, str]] = field(default_factory=list)
    committing: list[str] = field(default_factory=list)
    settlements: list[tuple[int, Settle]] = field(default_factory=list)
    transactions: list[Transaction] = field(default_factory=list)
    events: list[Outgoing] = field(default_factory=list)
    replies: list[tuple[AgentQuestion, Reply]] = field(default_factory=list)
    slots: list[int] = field(default_factory=list)

    @property
    def must_be_stored(self) -> bool:
        return bool(self.records or self.attempts or self.forget or self.committing)

    def __bool__(self) -> bool:
        acts = self.settlements or self.transactions or self.events or self.replies or self.slots
        return bool(acts) or self.must_be_stored

    def __iadd__(self, more: "Effects") -> "Effects":
        self.records += more.records
        self.attempts += more.attempts
        self.forget += more.forget
        self.committing += more.committing
        self.settlements += more.settlements
        self.transactions += more.transactions
        self.events += more.events
        self.replies += more.replies
        self.slots += more.slots
        return self

    def lose_connection(self) -> None:
        """What its deliveries were owed: the broker gives every one of them again."""
        self.settlements.clear()
        self.transactions.clear()


class BatchedAccepts:
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
        return bool(tags) and (self.stopping or len(tags) >= self._most or not self.seconds_until_due())

    def seconds_until_due(self) -> float:
        """Seconds until the oldest has waited long enough."""
        return max(0.0, self._since + self._seconds - time.monotonic()) if self._tags else float("inf")

    def widened(self, credit: int) -> int:
        """Deliveries that may be unsettled at a time: those that wait here keep no handler busy."""
        return credit and credit + len(self._tags)

    def take(self) -> list[tuple[int, Settle]]:
        tags, self._tags = self._tags, []
        return [(tag, Settle.ACCEPT) for tag in tags]
