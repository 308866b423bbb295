"""What a run knows of one delivery of the mode CLIENT, how long it waits, and of those that are over."""

import heapq
from collections.abc import Container, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from broker.port import Outgoing
from contract.acknowledgements import Action, EndState
from contract.reasons import Reason
from kma.children.worker_slot import HandlingEnd
from kma.delivery.effects import Transaction
from kma.delivery.in_flight import InFlight
from kma.sdk.job import AgentQuestion, Reply

_MOST_PAST = 10_000


@dataclass(slots=True)
class OpenDelivery:
    """`ended`: its handling, once that is over. `action`: the answer that counts, the first; `taker`: the
    question of its own handling that gave it. `opened`: its handling returned without an answer. `departing`:
    what its handling sent is on its way.
    `transaction`: the one that commits it. `state`, `reason`: how it ended; `noted`: the MA is told. `due`:
    monotonic, in seconds."""

    id: str
    work: InFlight
    ended: HandlingEnd | None = None
    action: Action | None = None
    taker: AgentQuestion | None = None
    waiting: list[AgentQuestion] = field(default_factory=list)
    from_ma: bool = False
    opened: bool = False
    departing: bool = False
    committing: bool = False
    transaction: Transaction | None = None
    noted: bool = False
    state: EndState | None = None
    reason: Reason | None = None
    seconds: float = 0.0
    jms_message_id: str = ""


class EndedDeliveries:
    """How the latest deliveries ended: for answers that come too late, or again."""

    def __init__(self) -> None:
        self._ends: dict[str, tuple[EndState, Reason | None]] = {}

    def add(self, delivery: OpenDelivery, state: EndState, reason: Reason | None) -> None:
        self._ends[delivery.id] = (state, reason)
        if len(self._ends) > _MOST_PAST:
            del self._ends[next(iter(self._ends))]

    def of(self, acknowledgement: str) -> tuple[EndState, Reason | None] | None:
        return self._ends.get(acknowledgement)


# How long a delivery of the mode CLIENT waits for its answer: the setting's timeout, or the message's own.


LONGEST = 10**9  # seconds: longer is as good as without end, and instants have their bounds


class NoSeconds(ValueError):
    """The message's property is no positive integer."""


def own_seconds(value: Any) -> int:
    """What the property says. Text of digits counts as the integer it spells, as JMS reads such a property
    and as STOMP producers can only write it. Raises NoSeconds."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
        raise NoSeconds(f"{str(value)[:100]!r} is not a positive whole number of seconds")
    return min(value, LONGEST)


class Deadlines:
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

    def seconds_until_due(self, now: float) -> float:
        """Seconds until the next is over."""
        return max(0.0, self._heap[0][0] - now) if self._heap else float("inf")


class Acts(Protocol):
    """What a run does at once with its link, its agents and what leaves it besides."""

    def transact(self, transaction: Transaction) -> None:
        """Begins it; `confirmed` is told its end."""

    def depart(self, acknowledgement: str, messages: Sequence[Outgoing]) -> None:
        """Sends them without a transaction; `sent` is told the end of it."""

    def reply(self, asked: AgentQuestion, reply: Reply) -> None:
        """Answers an agent's question."""

    def pass_on(self, asked: AgentQuestion) -> None:
        """A question about another run's delivery."""

    def accepted(self, slot: int) -> None:
        """The delivery is accepted that is handled in this slot, below 0: was handled before."""

    def failed(self, slot: int) -> None:
        """It has failed, though its handling may have returned."""
