"""What becomes of a message: modes by events. Tests play every cell on the real broker, docs/acknowledgement.md shows
the table."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from contract.messages import Mode
from contract.outcomes import Breaker


@dataclass(frozen=True)
class Way:
    """A column: a mode, and whether the agent sends something before the event."""

    mode: Mode
    sends: bool = False

    def __str__(self) -> str:
        return f"{self.mode.value}, sends" if self.sends else self.mode.value


class Event(Enum):
    """A row: what happens to the handling, or around it."""

    RETURNS = "returns"
    RETURNS_AGAIN = "returns, of a message that failed before"
    RAISES = "raises"
    RAISES_LAST = "raises, on the last attempt"
    TEMPORARY = "raises `TemporaryUnavailable`"
    INVALID = "raises `InvalidMessage`"
    CHILD_DIES = "its process dies"
    OVER_LIMIT = "takes longer than its limit"
    SEND_REFUSED = "sends to an address that is not there, and returns"
    STOPPED = "the run is stopped, the grace period passes"
    CONNECTION_LOST = "the connection is lost; it returns afterwards"
    KMA_KILLED = "the KMA is killed"
    KMA_KILLED_BEFORE = "returns, the KMA is killed before the broker is told"
    KMA_KILLED_AFTER = "returns, the broker is told, the KMA is killed before it hears of that"
    BROKER_KILLED = "the broker is killed; it returns afterwards"
    BROKER_KILLED_BEFORE = "returns, the broker is killed before it is told"
    BROKER_KILLED_AFTER = "returns, the broker is told and killed"


class Where(Enum):
    """Where the message is afterwards."""

    GONE = "gone"
    AT_ONCE = "back at once"
    DELAYED = "back after the delay"
    DEAD = "dead letter"


@dataclass(frozen=True)
class End:
    """`counts`: attempts that the broker has counted when it delivers the message again. `sent`: what the agent sent is
    there; else it never will be."""

    where: Where
    counts: tuple[int, ...] = ()
    sent: bool = False


@dataclass(frozen=True)
class Row:
    """`ends`: one of these. `record`: outcome and exception type of the one protocol, or another kind of record; empty
    for none. `breaker`: None where it depends on the moment."""

    event: Event
    ways: tuple[Way, ...]
    ends: tuple[End, ...]
    record: str = ""
    breaker: Breaker | None = Breaker.IGNORE


@dataclass(frozen=True)
class Cell:
    way: Way
    row: Row

    @property
    def event(self) -> Event:
        return self.row.event

    def __str__(self) -> str:
        return f"{self.event.name.lower()}-{str(self.way).replace(', ', '-').lower()}"


SILENT = tuple(Way(mode) for mode in (Mode.TRANSACTED, Mode.AUTO))
SENDING = tuple(Way(mode, sends=True) for mode in (Mode.TRANSACTED, Mode.AUTO))
WAYS = SILENT + SENDING

GONE = (End(Where.GONE, sent=True),)
AGAIN = (End(Where.DELAYED, (1,)),)
DEAD = (End(Where.DEAD),)
BACK = (End(Where.AT_ONCE, (0,)),)
# The broker counts a delivery before it makes it, and takes that back where it still can.
BACK_MAYBE_COUNTED = (End(Where.AT_ONCE, (0, 1)),)

ROWS = (
    Row(Event.RETURNS, WAYS, GONE, breaker=Breaker.RESET),
    Row(Event.RETURNS_AGAIN, WAYS, GONE, "recovered", Breaker.RESET),
    Row(Event.RAISES, WAYS, AGAIN, "raised: KeyError", Breaker.COUNT),
    Row(Event.RAISES_LAST, WAYS, DEAD, "raised: KeyError", Breaker.COUNT),
    Row(Event.TEMPORARY, WAYS, AGAIN, "temporary: kma.agent.TemporaryUnavailable"),
    Row(Event.INVALID, WAYS, DEAD, "invalid: kma.agent.InvalidMessage", Breaker.COUNT),
    Row(Event.CHILD_DIES, WAYS, AGAIN, "child_died: exit:3", Breaker.COUNT),
    Row(Event.OVER_LIMIT, WAYS, AGAIN, "timed_out: timeout", Breaker.COUNT),
    Row(Event.SEND_REFUSED, SENDING, AGAIN, "raised: send refused", Breaker.COUNT),
    Row(Event.STOPPED, WAYS, BACK),
    Row(Event.CONNECTION_LOST, WAYS, BACK_MAYBE_COUNTED),
    Row(Event.KMA_KILLED, WAYS, BACK_MAYBE_COUNTED, "kma_died: kma died"),
    Row(Event.KMA_KILLED_BEFORE, WAYS, BACK_MAYBE_COUNTED, breaker=None),
    Row(Event.KMA_KILLED_AFTER, WAYS, GONE, breaker=None),
    Row(Event.BROKER_KILLED, WAYS, BACK_MAYBE_COUNTED),
    Row(Event.BROKER_KILLED_BEFORE, WAYS, BACK_MAYBE_COUNTED, breaker=None),
    # It confirms a transaction when that is on its disk, and an acceptance never.
    Row(Event.BROKER_KILLED_AFTER, SENDING, GONE, breaker=None),
    Row(Event.BROKER_KILLED_AFTER, SILENT, GONE + BACK_MAYBE_COUNTED, breaker=None),
)

KMA_KILLS = (Event.KMA_KILLED, Event.KMA_KILLED_BEFORE, Event.KMA_KILLED_AFTER)
BROKER_KILLS = (Event.BROKER_KILLED, Event.BROKER_KILLED_BEFORE, Event.BROKER_KILLED_AFTER)


def possible(event: Event, way: Way) -> bool:
    return way.sends or event is not Event.SEND_REFUSED


def cells(*events: Event) -> Iterator[Cell]:
    """All, or those of these events."""
    for row in ROWS:
        if not events or row.event in events:
            yield from (Cell(way, row) for way in row.ways)
