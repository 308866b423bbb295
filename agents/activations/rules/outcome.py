"""Decides when an activation ends by itself, and as what; whether its servers differ meanwhile. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

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
