"""What becomes of a message: modes by events. Tests play every cell on the real broker,
docs/explanation/acknowledgement.md shows the table."""

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
    ROLLS_BACK = "answers `ROLLBACK`, and returns"
    RAISES_AFTER_COMMIT = "answers `COMMIT`, and raises"
    COMMITTED_LATER = "returns unanswered; `COMMIT` comes later"
    ROLLED_BACK_LATER = "returns unanswered; `ROLLBACK` comes later"
    NO_ANSWER = "returns unanswered; no answer comes in time"
    STOPPED = "the run is stopped, the grace period passes"
    STOPPED_OPEN = "returns unanswered; the run is stopped"
    CONNECTION_LOST = "the connection is lost; it returns afterwards"
    CONNECTION_LOST_OPEN = "returns unanswered; the connection is lost"
    KMA_KILLED = "the KMA is killed"
    KMA_KILLED_OPEN = "returns unanswered; the KMA is killed"
    KMA_KILLED_BEFORE = "returns, the KMA is killed before the broker is told"
    KMA_KILLED_AFTER = "returns, the broker is told, the KMA is killed before it hears of that"
    BROKER_KILLED = "the broker is killed; it returns afterwards"
    BROKER_KILLED_OPEN = "returns unanswered; the broker is killed"
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
    """`counts`: attempts that the broker has counted when it delivers the message again. `sent`: what the
    agent sent is there; else it never will be."""

    where: Where
    counts: tuple[int, ...] = ()
    sent: bool = False


@dataclass(frozen=True)
class Row:
    """`ends`: one of these. `records`: outcome and exception type of a protocol, or another kind of record.
    `breaker`: None where it depends on the moment."""

    event: Event
    ways: tuple[Way, ...]
    ends: tuple[End, ...]
    records: tuple[str, ...] = ()
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


BY_RETURN = (Mode.TRANSACTED, Mode.AUTO, Mode.DUPS_OK)
SILENT = tuple(Way(mode) for mode in BY_RETURN)
CLIENT = (Way(Mode.CLIENT, sends=True),)
BY_RETURNING = tuple(Way(mode, sends=True) for mode in BY_RETURN)
SENDING = BY_RETURNING + CLIENT
WAYS = SILENT + SENDING

GONE = (End(Where.GONE, sent=True),)
AGAIN = (End(Where.DELAYED, (1,)),)
AGAIN_SENT = (End(Where.DELAYED, (1,), sent=True),)
DEAD = (End(Where.DEAD),)
BACK = (End(Where.AT_ONCE, (0,)),)
BACK_SENT = (End(Where.AT_ONCE, (0,), sent=True),)
# The broker counts a delivery before it makes it, and takes that back where it still can.
BACK_MAYBE_COUNTED = (End(Where.AT_ONCE, (0, 1)),)
BACK_MAYBE_COUNTED_SENT = (End(Where.AT_ONCE, (0, 1), sent=True),)

KEY_ERROR, DIED = ("raised: KeyError",), ("kma_died: kma died",)
LOST = ("answer lost",)

ROWS = (
    Row(Event.RETURNS, WAYS, GONE, breaker=Breaker.RESET),
    Row(Event.RETURNS_AGAIN, WAYS, GONE, ("recovered",), Breaker.RESET),
    Row(Event.RAISES, WAYS, AGAIN, KEY_ERROR, Breaker.COUNT),
    Row(Event.RAISES_LAST, WAYS, DEAD, KEY_ERROR, Breaker.COUNT),
    Row(Event.TEMPORARY, WAYS, AGAIN, ("temporary: kma.agent.TemporaryUnavailable",)),
    Row(Event.INVALID, WAYS, DEAD, ("invalid: kma.agent.InvalidMessage",), Breaker.COUNT),
    Row(Event.CHILD_DIES, WAYS, AGAIN, ("child_died: exit:3",), Breaker.COUNT),
    Row(Event.OVER_LIMIT, WAYS, AGAIN, ("timed_out: timeout",), Breaker.COUNT),
    Row(Event.SEND_REFUSED, SENDING, AGAIN, ("raised: send refused",), Breaker.COUNT),
    Row(Event.ROLLS_BACK, CLIENT, AGAIN, ("rolled_back: rollback",), Breaker.COUNT),
    Row(Event.RAISES_AFTER_COMMIT, CLIENT, GONE, ("raised_after_commit: KeyError",), Breaker.COUNT),
    Row(Event.COMMITTED_LATER, CLIENT, GONE, ("answer committed",), Breaker.RESET),
    Row(
        Event.ROLLED_BACK_LATER,
        CLIENT,
        AGAIN_SENT,
        ("rolled_back: rollback", "answer rolled_back"),
        Breaker.COUNT,
    ),
    Row(
        Event.NO_ANSWER,
        CLIENT,
        AGAIN_SENT,
        ("unanswered: acknowledgement_timeout", "answer expired"),
        Breaker.COUNT,
    ),
    Row(Event.STOPPED, WAYS, BACK),
    Row(Event.STOPPED_OPEN, CLIENT, BACK_SENT, LOST),
    Row(Event.CONNECTION_LOST, WAYS, BACK_MAYBE_COUNTED),
    Row(Event.CONNECTION_LOST_OPEN, CLIENT, BACK_MAYBE_COUNTED_SENT, LOST),
    Row(Event.KMA_KILLED, WAYS, BACK_MAYBE_COUNTED, DIED),
    Row(Event.KMA_KILLED_OPEN, CLIENT, BACK_MAYBE_COUNTED_SENT, LOST),
    Row(Event.KMA_KILLED_BEFORE, SILENT + BY_RETURNING, BACK_MAYBE_COUNTED, breaker=None),
    # Its answer is a part of its handling.
    Row(Event.KMA_KILLED_BEFORE, CLIENT, BACK_MAYBE_COUNTED, DIED),
    Row(Event.KMA_KILLED_AFTER, SILENT + BY_RETURNING, GONE, breaker=None),
    Row(Event.KMA_KILLED_AFTER, CLIENT, GONE, DIED),
    Row(Event.BROKER_KILLED, WAYS, BACK_MAYBE_COUNTED),
    Row(Event.BROKER_KILLED_OPEN, CLIENT, BACK_MAYBE_COUNTED_SENT, LOST),
    Row(Event.BROKER_KILLED_BEFORE, WAYS, BACK_MAYBE_COUNTED, breaker=None),
    # It confirms a transaction when that is on its disk, and an acceptance never.
    Row(Event.BROKER_KILLED_AFTER, SENDING, GONE, breaker=None),
    Row(Event.BROKER_KILLED_AFTER, SILENT, GONE + BACK_MAYBE_COUNTED, breaker=None),
)

KMA_KILLS = tuple(event for event in Event if event.name.startswith("KMA_KILLED"))
BROKER_KILLS = tuple(event for event in Event if event.name.startswith("BROKER_KILLED"))
OPEN = (
    Event.COMMITTED_LATER,
    Event.ROLLED_BACK_LATER,
    Event.NO_ANSWER,
    *(event for event in Event if event.name.endswith("_OPEN")),
)


def possible(event: Event, way: Way) -> bool:
    if event is Event.SEND_REFUSED:
        return way.sends
    return way.mode is Mode.CLIENT or event not in (*OPEN, Event.ROLLS_BACK, Event.RAISES_AFTER_COMMIT)


def cells(*events: Event) -> Iterator[Cell]:
    """All, or those of these events."""
    for row in ROWS:
        if not events or row.event in events:
            yield from (Cell(way, row) for way in row.ways)
