"""Decides when an activation ends by itself or is drained, and as what; whether its servers differ
meanwhile. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from agents.activations.queries import AnyRun, OpenRun, newest_by_server
from agents.models import ActivationState, Ending, Run, RunPhase, ServerState, SettingKind, Timing
from agents.models.activation import OPEN_ACTIVATIONS

SELF_ENDED = (RunPhase.FINISHED, RunPhase.FAILED)


@dataclass(frozen=True, slots=True)
class RunFact:
    """`silent`: its server counts as lost now."""

    state: str
    wanted: bool
    closed: bool
    silent: bool = False


def runs_out(kind: str, timing: str) -> bool:
    """Returns whether runs of such a setting may end by themselves; a message agent as soon as possible runs
    until told."""
    return timing == Timing.DELAYED or kind == SettingKind.STANDALONE


def own_ending(kind: str, timing: str, runs: Sequence[RunFact]) -> Ending | None:
    """Returns how an activation without an ending ended by itself: at least one run did, and no server goes
    on.

    A run that is only interrupted is no end: two of them or a person decide. A silent server is waited for as
    long as another one works, no longer: nobody knows whether it ever comes back.
    """
    if not runs_out(kind, timing):
        return None
    over = [run for run in runs if run.wanted and run.closed and run.state in SELF_ENDED]
    if not over or any(run.wanted and not run.closed and not run.silent for run in runs):
        return None
    by_limit = kind == SettingKind.MESSAGE and all(run.state == RunPhase.FINISHED for run in over)
    return Ending.LIMIT if by_limit else Ending.FINISHED


def finished_well(ending: str, runs: Iterable[RunFact], *, raised: bool, unresolved: int) -> bool:
    """Whatever its state: one that a person switched off may have finished well. `raised`: a standalone agent
    did."""
    bad = {RunPhase.INTERRUPTED, RunPhase.LOST, RunPhase.FAILED} & {run.state for run in runs}
    return not (bad or raised or unresolved or ending == Ending.WAITED)


def final_state(state: str, ending: str, runs: Iterable[RunFact], unresolved: int) -> ActivationState:
    """Returns the state of an activation all of whose runs are closed. One that was switched off has its
    state already."""
    if state not in OPEN_ACTIVATIONS:
        return ActivationState(state)
    if ending == Ending.STOPPED:
        return ActivationState.STOPPED
    states = {run.state for run in runs}
    if RunPhase.INTERRUPTED in states:
        return ActivationState.INTERRUPTED
    bad = ending == Ending.WAITED or RunPhase.LOST in states or RunPhase.FAILED in states
    return ActivationState.FAILED if bad or unresolved else ActivationState.SUCCEEDED


# -- whether the servers of an open activation differ: some work as they should and some do not --------------
# Pure, for pages.


TROUBLED = (RunPhase.INTERRUPTED, RunPhase.LOST, RunPhase.FAILED)


def is_partial(runs: Iterable[AnyRun], now: datetime) -> bool:
    """`runs` of one activation, with their servers. Only the newest of each server counts; one that the MA
    took away in order, or that is still starting, is neither well nor in trouble."""
    newest = newest_by_server(runs).values()
    return any(_is_well(run, now) for run in newest) and any(_is_in_trouble(run, now) for run in newest)


def _is_well(run: Run | OpenRun, now: datetime) -> bool:
    if run.closed_at is not None:
        return run.wanted and run.state == RunPhase.FINISHED
    return run.state == RunPhase.RUNNING and not _is_in_trouble(run, now)


def _is_in_trouble(run: Run | OpenRun, now: datetime) -> bool:
    if run.state in TROUBLED:
        return True
    return (
        run.closed_at is None and run.wanted and (bool(run.problems or run.blocked) or _is_silent(run, now))
    )


def _is_silent(run: Run | OpenRun, now: datetime) -> bool:
    return run.server.state(now) is not ServerState.ALIVE


# -- an activation that drains its subscription --------------------------------------------------------------
# What the broker says now, what was seen before.
#
# Drained: everything that was in the subscription at the start is handled or dead, for the idle time.
# Delayed messages and those in delivery are in it. Messages that come later are taken within the limits: a
# setting that has one goes on until nothing came for the idle time, or the limit is reached; one without
# does not wait for them, so that it ends under a steady stream too.


@dataclass(frozen=True, slots=True)
class QueueReading:
    """Holds what the broker counts in a subscription. `total` contains `delayed` (waiting for their
    redelivery) and `in_delivery`; `added` counts every message that ever came, redeliveries aside. `later`:
    so many of these came after the start; None where that is not known, or where they are to be taken too."""

    total: int
    delayed: int
    in_delivery: int
    added: int
    later: int | None = None

    @property
    def gone(self) -> bool:
        """Nothing of the start is left. As many as came later may be left; a delayed one may be of the
        start."""
        return self.total == 0 or (self.later is not None and self.delayed == 0 and self.total <= self.later)

    @property
    def only_delayed(self) -> bool:
        if self.later is not None and self.later > 0:
            return self.delayed > 0 and self.total - self.delayed <= self.later
        return self.total > 0 and self.delayed >= self.total and self.in_delivery == 0


@dataclass(frozen=True, slots=True)
class DrainProgress:
    """`idle_since`: seen with nothing of the start, and nothing came since that is waited for.
    `delayed_since`: nothing was left but delayed messages, and nothing came since. `added`: as it was seen
    last; None before the first look."""

    idle_since: datetime | None = None
    delayed_since: datetime | None = None
    added: int | None = None


@dataclass(frozen=True, slots=True)
class Patience:
    """`idle`: so long empty. `wait`: so long for delayed messages, all of them together. `longest`: zero = no
    limit. `later`: messages that come after the start are taken too, until a limit."""

    idle: timedelta
    wait: timedelta
    longest: timedelta = timedelta()
    later: bool = False


def advance_drain(reading: QueueReading, before: DrainProgress, now: datetime) -> DrainProgress:
    """Returns what is known after this look. A message that came and was handled between two looks also
    starts the idle time anew; a delayed one that is tried again meanwhile and fails does not start the
    waiting anew."""
    came = reading.added != before.added and reading.later is None
    known = DrainProgress() if came else before
    idle_since = (known.idle_since or now) if reading.gone else None
    delayed_since = known.delayed_since or (now if reading.only_delayed else None)
    return DrainProgress(idle_since, None if reading.gone else delayed_since, reading.added)


def verdict(
    reading: QueueReading, progress: DrainProgress, patience: Patience, now: datetime
) -> Ending | None:
    """Returns whether it is done by what was seen. A delayed message that is tried again now may succeed."""
    if progress.idle_since is not None and now - progress.idle_since >= patience.idle:
        return Ending.DRAINED
    if (
        reading.only_delayed
        and progress.delayed_since is not None
        and now - progress.delayed_since >= patience.wait
    ):
        return Ending.WAITED
    return None


def time_is_up(started_at: datetime, longest: timedelta, now: datetime) -> bool:
    return bool(longest) and now - started_at >= longest
