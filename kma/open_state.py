"""What a run knows of one delivery of the mode CLIENT, and of those that are over."""

from dataclasses import dataclass, field

from contract.acknowledgements import Action, EndState
from contract.reasons import Reason
from kma.pool import Asked
from kma.seat import Ended
from kma.work import Work

_MOST_PAST = 10_000


@dataclass(slots=True)
class Delivery:
    """`ended`: its handling, once that is over. `action`: the answer that counts, the first; `taker`: the
    question of its own handling that gave it. `opened`: its handling returned without an answer. `departing`:
    what its handling sent is on its way. `state`, `reason`: how it ended; `noted`: the MA is told. `due`:
    monotonic, in seconds."""

    id: str
    work: Work
    ended: Ended | None = None
    action: Action | None = None
    taker: Asked | None = None
    waiting: list[Asked] = field(default_factory=list)
    from_ma: bool = False
    opened: bool = False
    departing: bool = False
    committing: bool = False
    noted: bool = False
    state: EndState | None = None
    reason: Reason | None = None
    seconds: float = 0.0
    jms_message_id: str = ""


class Past:
    """How the latest deliveries ended: for answers that come too late, or again."""

    def __init__(self) -> None:
        self._ends: dict[str, tuple[EndState, Reason | None]] = {}

    def add(self, delivery: Delivery, state: EndState, reason: Reason | None) -> None:
        self._ends[delivery.id] = (state, reason)
        if len(self._ends) > _MOST_PAST:
            del self._ends[next(iter(self._ends))]

    def of(self, acknowledgement: str) -> tuple[EndState, Reason | None] | None:
        return self._ends.get(acknowledgement)
