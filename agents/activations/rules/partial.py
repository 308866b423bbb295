"""Whether the servers of an open activation differ: some work as they should and some do not. Pure, for
pages."""

from collections.abc import Iterable
from datetime import datetime

from agents.activations.queries import AnyRun, OpenRun, newest_by_server
from agents.models import Run, RunPhase, ServerState

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
