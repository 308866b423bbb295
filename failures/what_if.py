"""What the breaker would have done with another limit: its rule over stored failures. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from contract.breaker import TripReason
from failures.tally import Failure, Step, Tally


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


class Replay:
    """The breaker with one limit, fed with failures in the order in which they occurred.

    `quorums`: by activation, how many servers must give the setting up (1 unless told). After a trip somebody
    is taken to have enabled the setting at once: every count begins at 0. A server that gave it up alone
    counts no more in that activation, as it would not have run.
    """

    def __init__(
        self, m: int, *, count_once: bool = False, quorums: Mapping[UUID, int] | None = None
    ) -> None:
        self._m, self._once, self._quorums = m, count_once, quorums or {}
        self._lives: dict[UUID, _Life] = {}
        self._trips: list[WouldTrip] = []
        self._alone = self._failures = 0

    def add(self, stored: Stored) -> None:
        self._failures += 1
        life = self._lives.setdefault(stored.activation, _Life())
        if stored.server in life.given_up:
            return
        tally = life.tallies.get(stored.server)
        if tally is None:
            tally = life.tallies[stored.server] = Tally(self._m, count_once=self._once)
        step = tally.add(stored.failure)
        if step.trip is None:
            return
        life.given_up.append(stored.server)
        if len(life.given_up) < self._quorums.get(stored.activation, 1):
            self._alone += 1
        else:
            self._switch_off(life, step)

    def answer(self) -> Answer:
        return Answer(tuple(self._trips), self._alone, self._failures)

    def _switch_off(self, life: _Life, step: Step) -> None:
        # Those who gave it up before were not alone after all.
        self._alone -= len(life.given_up) - 1
        exception = step.failure.exception_type if step.trip is TripReason.SAME_TYPE else ""
        assert step.trip is not None
        self._trips.append(WouldTrip(step.failure.at, step.trip, exception, tuple(life.given_up)))
        for tally in life.tallies.values():
            tally.reset()
        life.given_up.clear()


def what_if(
    failures: Iterable[Stored], m: int, *, count_once: bool = False, quorums: Mapping[UUID, int] | None = None
) -> Answer:
    replay = Replay(m, count_once=count_once, quorums=quorums)
    for stored in failures:
        replay.add(stored)
    return replay.answer()
