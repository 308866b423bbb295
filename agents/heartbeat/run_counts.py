"""Counts stored facts on their run. Called by `failures` inside the transaction that stores them."""

from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F, Q

from agents import hooks
from agents.activations.end import end_activations, standalone_raised
from agents.activations.plan import plan_what_follows
from agents.breaker.interruption import mark_interrupted
from agents.heartbeat.run_reports import counted
from agents.models import Activation, ActivationState, Run, RunPhase
from agents.reasons import LATE_RECORDS
from agents.state_history import note
from contract.records import Closing, RunState

# -- records that come after the end of their activation -----------------------------------------------------
# They can only turn well into error.


def note_late(
    ended_one: UUID, records: int, failed: int, temporary: int, closing: Closing | None, now: datetime
) -> None:
    """Called inside the intake's transaction, with the records stored. Nothing happens while the activation
    is open: the row is then not touched, so that no intake waits for another."""
    ended = Activation.objects.filter(pk=ended_one, ended_at__isnull=False)
    if not ended.update(late_records=F("late_records") + records, cleared=False):
        return
    badly_closed = closing is not None and closing.state is not RunState.FINISHED
    well = ended.filter(Q(well=True) | Q(state=ActivationState.SUCCEEDED)).select_related("setting")
    activation = well.first() if failed or temporary or badly_closed else None
    if activation is None:
        return
    left = failed and any(hooks.unresolved_messages(activation))
    if badly_closed or left or standalone_raised(activation):
        _turn_into_error(activation, now)


def _turn_into_error(activation: Activation, now: datetime) -> None:
    rows = Activation.objects.filter(pk=activation.pk)
    rows.update(well=False)
    if rows.filter(state=ActivationState.SUCCEEDED).update(state=ActivationState.FAILED):
        old, new = ActivationState.SUCCEEDED.value, ActivationState.FAILED.value
        note(
            activation.setting, "activation", old, new, now=now, reason=LATE_RECORDS(), activation=activation
        )


CLOSED_AS = {RunState.FAILED: RunPhase.FAILED, RunState.INTERRUPTED: RunPhase.INTERRUPTED}


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
    note_late(run.activation_id, stored + (closing is not None), failed, temporary, closing, now)
    if closing is not None or run.closed_at is not None:
        # After the commit: who ends an activation or plans it locks it before its runs, the intake has locked
        # runs.
        activation = run.activation_id
        transaction.on_commit(lambda: _go_on(activation, now), robust=True)


def _go_on(activation: UUID, now: datetime) -> None:
    """A kill before it is made good by `agents.tend`."""
    end_activations(now, [activation])
    plan_what_follows(activation, now)


def _close(run: Run, closing: Closing, now: datetime) -> None:
    """The closing record is the last of its spool: all records before it are stored. The first one counts."""
    values: dict[str, Any] = {"closing_records": closing.records, "handled": closing.handled}
    if not Run.objects.filter(pk=run.pk, closing_records=None).update(**values):
        return
    if closing.counts is not None:
        # What was given up keeps the counts that did it.
        Run.objects.filter(pk=run.pk).exclude(state=RunPhase.INTERRUPTED).update(**counted(closing.counts))
    if closing.state is RunState.INTERRUPTED:
        mark_interrupted(run, now)
    state = CLOSED_AS.get(closing.state, RunPhase.FINISHED)
    still_open = Run.objects.filter(pk=run.pk, closed_at=None)
    still_open.update(state=state, closed_at=now, connected=False, in_progress=0)
