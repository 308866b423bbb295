"""Decides which servers run an activation. Pure: facts in, plan out."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum


@dataclass(frozen=True, slots=True)
class Candidate:
    """A server of the pool. `offers` the agent; `load` = runs wanted there now; `lost` = silent, and for so
    long that it counts (between alive and lost nothing is decided). `cordoned`: nothing new begins there;
    `draining`: what runs there shall move or end. `obeys`: it takes what it is sent; where it does not,
    nothing new would begin. `stopped`: a person stopped this setting there."""

    server: int
    name: str
    alive: bool
    offers: bool
    load: int
    lost: bool = False
    cordoned: bool = False
    draining: bool = False
    obeys: bool = True
    stopped: bool = False

    @property
    def willing(self) -> bool:
        return self.alive and self.offers

    @property
    def able(self) -> bool:
        return self.willing and self.obeys and not (self.cordoned or self.draining or self.stopped)

    @property
    def keeps(self) -> bool:
        """Returns whether a run that is wanted here stays here, as far as the server can keep it."""
        return self.offers if self.alive else not self.lost


@dataclass(frozen=True, slots=True)
class Current:
    """The newest run of the activation on a server, if it is wanted or interrupted. `over`: it ended by
    itself or was interrupted, so nothing begins there again until a person says so."""

    run: int
    server: int
    over: bool = False


class Blocker(Enum):
    """Says why nothing can be started now."""

    NOTHING = ""
    NO_SERVER = "no_server"
    NONE_ALIVE = "none_alive"
    NONE_OFFERS = "none_offers"
    CORDONED = "cordoned"
    DISOBEYING = "disobeying"
    STOPPING = "stopping"
    STOPPED_THERE = "stopped_there"


@dataclass(frozen=True, slots=True)
class Plan:
    """`lose`: runs whose server is silent. `withdraw`: runs whose server may stop them in order."""

    start: tuple[int, ...] = ()
    lose: tuple[int, ...] = ()
    withdraw: tuple[int, ...] = ()
    waiting: Blocker = Blocker.NOTHING

    @property
    def changes(self) -> bool:
        return bool(self.start or self.lose or self.withdraw)


def plan_any(
    candidates: Sequence[Candidate], current: Sequence[Current], *, fenced: bool = True, leaving: bool = False
) -> Plan:
    """One run. It moves when its server is lost, drains, left the pool or no longer offers the agent, and
    another is able. Without another able server the run stays wanted where it is: a silent server may well go
    on with it. Where a person stopped it, it ends in any case, as where the server left the pool.

    `fenced`: the broker never feeds two at once, so that the next one may begin while the one before still
    stops. Where nothing fences (standalone), nothing begins while a run is `leaving`: one that is not wanted
    and not closed.
    """
    if any(run.over for run in current):
        return Plan()
    pool = {candidate.server: candidate for candidate in candidates if not candidate.stopped}
    able = sorted((c for c in candidates if c.able), key=lambda c: (c.load, c.name))
    staying = [run.run for run in current if run.server in pool and _stays(pool[run.server], bool(able))]
    if staying:
        # More than one is left by a setting that was MANY until now, or by nothing that we know of.
        return Plan(withdraw=tuple(run.run for run in current if run.run != max(staying)))
    gone = tuple(run.run for run in current if run.server not in pool)
    if not able:
        return Plan(withdraw=gone, waiting=_waiting(candidates))
    silent = tuple(run.run for run in current if run.server in pool and not pool[run.server].alive)
    unable = tuple(run.run for run in current if run.server in pool and pool[run.server].alive)
    if not fenced and (leaving or gone or unable):
        return Plan(lose=silent, withdraw=gone + unable, waiting=Blocker.STOPPING)
    return Plan(start=(able[0].server,), lose=silent, withdraw=gone + unable)


def plan_many(candidates: Sequence[Candidate], current: Sequence[Current]) -> Plan:
    """A run on every able server; one that left the pool, drains or where a person stopped it is withdrawn,
    a silent one keeps its run."""
    pool = {candidate.server: candidate for candidate in candidates if not candidate.stopped}
    running = {run.server for run in current}
    start = tuple(c.server for c in candidates if c.able and c.server not in running)
    gone = tuple(r.run for r in current if not r.over and (r.server not in pool or pool[r.server].draining))
    nothing_runs = not start and not running & pool.keys()
    return Plan(start=start, withdraw=gone, waiting=_waiting(candidates) if nothing_runs else Blocker.NOTHING)


def _stays(server: Candidate, another_is_able: bool) -> bool:
    if server.alive and server.draining and another_is_able:
        return False
    return server.keeps


def _waiting(candidates: Sequence[Candidate]) -> Blocker:
    if not candidates:
        return Blocker.NO_SERVER
    if not any(candidate.alive for candidate in candidates):
        return Blocker.NONE_ALIVE
    willing = [candidate for candidate in candidates if candidate.willing]
    if not willing:
        return Blocker.NONE_OFFERS
    allowed = [candidate for candidate in willing if not candidate.stopped]
    if not allowed:
        return Blocker.STOPPED_THERE
    return Blocker.CORDONED if any(candidate.obeys for candidate in allowed) else Blocker.DISOBEYING
