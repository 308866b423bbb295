"""What the breaker would have done with another limit: its rule over stored failures. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from contract.breaker import TripReason
from failures.tally import Failure, Tally


@dataclass(frozen=True, slots=True)
class Stored:
    """A failure and where it happened."""

    failure: Failure
    activation: UUID
    server: str


@dataclass(frozen=True, slots=True)
class WouldTrip:
    """The setting would have been switched off here. `servers`: who had given it up, this one last."""

    at: datetime
    reason: TripReason
    exception_type: str
    servers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """`alone`: times a server would have given the setting up without switching it off everywhere."""

    trips: tuple[WouldTrip, ...] = ()
    alone: int = 0
    failures: int = 0


@dataclass
class _Life:
    """One activation between two trips: a tally per server, and who gave it up."""

    tallies: dict[str, Tally] = field(default_factory=dict)
    given_up: list[str] = field(default_factory=list)


def what_if(
    failures: Iterable[Stored], m: int, *, count_once: bool = False, quorums: Mapping[UUID, int] | None = None
) -> Answer:
    """`failures` in the order in which they occurred; `quorums`: by activation, how many servers must give the setting
    up (1 unless told). After a trip somebody is taken to have enabled the setting at once: every count begins at 0.
    A server that gave it up alone counts no more in that activation, as it would not have run.
    """
    trips: list[WouldTrip] = []
    alone = total = 0
    for stored, life in _lives(failures):
        total += 1
        if stored.server in life.given_up:
            continue
        tally = life.tallies.setdefault(stored.server, Tally(m, count_once=count_once))
        step = tally.add(stored.failure)
        if step.trip is None:
            continue
        life.given_up.append(stored.server)
        if len(life.given_up) < (quorums or {}).get(stored.activation, 1):
            alone += 1
            continue
        alone -= len(life.given_up) - 1
        exception = step.failure.exception_type if step.trip is TripReason.SAME_TYPE else ""
        trips.append(WouldTrip(step.failure.at, step.trip, exception, tuple(life.given_up)))
        for each in life.tallies.values():
            each.reset()
        life.given_up.clear()
    return Answer(tuple(trips), alone, total)


def _lives(failures: Iterable[Stored]) -> Iterator[tuple[Stored, _Life]]:
    lives: dict[UUID, _Life] = {}
    for stored in failures:
        yield stored, lives.setdefault(stored.activation, _Life())
