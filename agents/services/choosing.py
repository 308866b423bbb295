"""Which servers run an activation. Pure: facts in, plan out."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum


@dataclass(frozen=True, slots=True)
class Candidate:
    """A server of the pool. `offers` the agent; `load` = runs wanted there now; `lost` = silent, and for so long that
    it counts (between alive and lost nothing is decided)."""

    server: int
    name: str
    alive: bool
    offers: bool
    load: int
    lost: bool = False

    @property
    def able(self) -> bool:
        return self.alive and self.offers

    @property
    def keeps(self) -> bool:
        """Whether a run that is wanted here stays here."""
        return self.offers if self.alive else not self.lost


@dataclass(frozen=True, slots=True)
class Current:
    """A run of the activation that is wanted now."""

    run: int
    server: int


class Waiting(Enum):
    """Why nothing can be started now."""

    NOTHING = ""
    NO_SERVER = "no_server"
    NONE_ALIVE = "none_alive"
    NONE_OFFERS = "none_offers"


@dataclass(frozen=True, slots=True)
class Plan:
    """`lose`: runs whose server is silent. `withdraw`: runs whose server may stop them in order."""

    start: tuple[int, ...] = ()
    lose: tuple[int, ...] = ()
    withdraw: tuple[int, ...] = ()
    waiting: Waiting = Waiting.NOTHING

    @property
    def changes(self) -> bool:
        return bool(self.start or self.lose or self.withdraw)


def plan_any(candidates: Sequence[Candidate], current: Sequence[Current]) -> Plan:
    """One run. It moves when its server is lost, left the pool or no longer offers the agent, and another is able.

    Without another able server the run stays wanted where it is: a silent server may well go on with it.
    """
    pool = {candidate.server: candidate for candidate in candidates}
    if any(pool[run.server].keeps for run in current if run.server in pool):
        return Plan()
    able = sorted((c for c in candidates if c.able), key=lambda c: (c.load, c.name))
    gone = tuple(run.run for run in current if run.server not in pool)
    if not able:
        return Plan(withdraw=gone, waiting=_waiting(candidates))
    silent = tuple(run.run for run in current if run.server in pool and not pool[run.server].alive)
    unable = tuple(run.run for run in current if run.server in pool and pool[run.server].alive)
    return Plan(start=(able[0].server,), lose=silent, withdraw=gone + unable)


def plan_many(candidates: Sequence[Candidate], current: Sequence[Current]) -> Plan:
    """A run on every able server; one that left the pool is withdrawn, a silent one keeps its run."""
    pool = {candidate.server for candidate in candidates}
    running = {run.server for run in current}
    start = tuple(c.server for c in candidates if c.able and c.server not in running)
    gone = tuple(run.run for run in current if run.server not in pool)
    nothing_runs = not start and not running & pool
    return Plan(start=start, withdraw=gone, waiting=_waiting(candidates) if nothing_runs else Waiting.NOTHING)


def _waiting(candidates: Sequence[Candidate]) -> Waiting:
    if not candidates:
        return Waiting.NO_SERVER
    if not any(candidate.alive for candidate in candidates):
        return Waiting.NONE_ALIVE
    return Waiting.NONE_OFFERS
