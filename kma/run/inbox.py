"""What reaches a run from other threads: the consumer's events and the host's wishes, in the order they
came."""

import os
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from threading import Lock

from broker.port import Delivery
from contract.messages import Answer, DesiredRun
from kma.delivery.outbox import SendResult
from kma.sdk.job import AgentQuestion, Reply


@dataclass(frozen=True, slots=True)
class Opened:
    pass


@dataclass(frozen=True, slots=True)
class Lost:
    reason: str
    permanent: bool


@dataclass(frozen=True, slots=True)
class Settled:
    tag: int
    problem: str | None


@dataclass(frozen=True, slots=True)
class Stop:
    """`close`: the MA does not want the run any more, so that it ends with its closing record."""

    close: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Change:
    """The wanted run with other numbers (limits, known attempts) that need no restart."""

    desired: DesiredRun


@dataclass(frozen=True, slots=True)
class RemoteReply:
    """The MA's word on an answer to a delivery of another run, for the agent that asked."""

    asked: AgentQuestion
    reply: Reply


Event = Delivery | Opened | Lost | Settled | Stop | Change | Answer | SendResult | RemoteReply


class RunInbox:
    """A `ConsumerEvents`. `descriptor` becomes readable when the run shall look."""

    def __init__(self) -> None:
        self._events: deque[Event] = deque()
        self._awake = False
        self._lock = (
            Lock()
        )  # the descriptor: nobody writes to it once it is closed, it may be another file then
        self._closed = False
        # While the run has messages in stock a delivery need not wake it: it looks here anyway.
        self.hungry = True
        self.descriptor = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)

    def opened(self) -> None:
        self.put(Opened())

    def lost(self, reason: str, permanent: bool) -> None:
        self.put(Lost(reason, permanent))

    def settled(self, tag: int, problem: str | None) -> None:
        self.put(Settled(tag, problem))

    def delivered(self, delivery: Delivery) -> None:
        self._events.append(delivery)
        # After the append: the run says that it is hungry first and looks then, so one of both sees the
        # other.
        if self.hungry:
            self._wake()

    def put(self, event: Event) -> None:
        self._events.append(event)
        self._wake()

    @property
    def pending(self) -> bool:
        return bool(self._events)

    def drain(self) -> Iterator[Event]:
        """The run's thread only."""
        if self._awake:
            # First the flag, then the events: who appends from now on wakes again.
            self._awake = False
            with suppress(BlockingIOError):
                os.eventfd_read(self.descriptor)
        while self._events:
            yield self._events.popleft()

    def close(self) -> None:
        with self._lock:
            self._closed = True
            os.close(self.descriptor)

    def _wake(self) -> None:
        if self._awake:
            return
        with self._lock:
            if not self._closed:
                self._awake = True
                os.eventfd_write(self.descriptor, 1)
