"""Counts stored facts on their run. Called by `failures` inside the transaction that stores them."""

from datetime import datetime

from django.db.models import F

from agents.models import Run, RunPhase
from agents.services.closing import close_finished_activations
from contract.messages import Closing, RunState


def record_outcomes(
    run: Run,
    *,
    failed: int = 0,
    temporary: int = 0,
    recovered: int = 0,
    stored: int = 0,
    closing: Closing | None = None,
    now: datetime,
) -> None:
    """Adds to the counters of a run, whatever its epoch. `temporary` failures are not among `failed`;
    `stored` counts records of every kind but the closing one."""
    Run.objects.filter(pk=run.pk).update(
        failed=F("failed") + failed,
        temporary=F("temporary") + temporary,
        recovered=F("recovered") + recovered,
        stored_records=F("stored_records") + stored,
    )
    if closing is not None:
        _close(run, closing, now)


def _close(run: Run, closing: Closing, now: datetime) -> None:
    """The closing record is the last of its spool: all records before it are stored."""
    Run.objects.filter(pk=run.pk).update(closing_records=closing.records, handled=closing.handled)
    state = RunPhase.FAILED if closing.state is RunState.FAILED else RunPhase.FINISHED
    still_open = Run.objects.filter(pk=run.pk, closed_at=None)
    if still_open.update(state=state, closed_at=now, connected=False, in_progress=0):
        close_finished_activations(now)
