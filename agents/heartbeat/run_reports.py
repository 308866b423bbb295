"""Describes what a KMA says of its runs: claims to the present, of which those of an old epoch have no
effect; and stored facts, which `failures` counts inside the transaction that stores them."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import structlog
from django.db import InterfaceError, OperationalError, transaction
from django.db.models import F, Q

from agents import hooks
from agents.activations.end import end_activations, standalone_raised
from agents.activations.launch import end_trial
from agents.activations.plan import plan_what_follows
from agents.breaker.interruption import mark_interrupted, note_interrupted
from agents.isolation import isolated
from agents.models import Activation, ActivationState, Run, RunPhase, Server
from agents.models.activation import OPEN_ACTIVATIONS
from agents.reasons import LATE_RECORDS
from agents.state_history import note
from console.reasons import Reason
from contract.breaker import MARK_LENGTH, MOST_MARKS
from contract.messages import BlockedMessage, RunReport
from contract.records import BreakerCounts, Closing, RunState
from contract.typed import storable
from contract.wire import dump

log = structlog.get_logger(__name__)

BIGGEST = 2**31 - 1
BIGGEST_TOTAL = 2**63 - 1
MOST_PROBLEMS, MOST_OF_RUN = 20, 5  # of one server, of one run
LONGEST_KEY = 255
COUNTED = ("same_type", "same_count", "any_count", "counted_marks")


def accept_claims(server: Server, reports: Sequence[RunReport], now: datetime) -> None:
    """Writes only what changed. A claim about a run that is unknown, lost, or not the newest here is left
    aside; one that cannot be stored keeps neither the others nor the answer from their server."""
    news = _news(server, reports)
    if not news:
        return
    try:
        with transaction.atomic():
            for run, report in news:
                _accept(run, report, now)
    except (OperationalError, InterfaceError):
        raise
    except Exception as error:
        log.warning("run reports stored one by one", server=server.name, reason=repr(error))
        # Read anew: what was noted in these rows is taken back.
        for run, report in _news(server, reports):
            with isolated("report of a run", activation=run.activation_id, run=run.pk), transaction.atomic():
                _accept(run, report, now)


def _news(server: Server, reports: Sequence[RunReport]) -> list[tuple[Run, RunReport]]:
    """Returns them in the order of the rows' keys, as the intake locks them."""
    named = Run.objects.filter(server=server, activation__in={report.activation for report in reports})
    runs = _newest(named.select_related("activation__setting", "server"))
    known = [(run, report) for report in reports if (run := runs.get(report.activation)) is not None]
    news = []
    for run, report in sorted(known, key=lambda pair: pair[0].pk):
        with isolated("report of a run", activation=run.activation_id, run=run.pk):
            if run.epoch == report.epoch and run.state != RunPhase.LOST and _is_news(run, report):
                news.append((run, report))
    return news


def _is_news(run: Run, report: RunReport) -> bool:
    """Returns whether `_accept` would do anything: most reports of most heartbeats cost nothing."""
    draining = not run.wanted and run.closed_at is None
    moved = run.closed_at is None and run.state not in (report.state.value, RunPhase.INTERRUPTED)
    tried = bool(report.handled and run.activation.trial)
    return draining or moved or tried or run.reported_at is None or bool(_changed(run, report))


def _changed(run: Run, report: RunReport) -> dict[str, Any]:
    return {name: value for name, value in _claimed(report).items() if getattr(run, name) != value}


def _accept(run: Run, report: RunReport, now: datetime) -> None:
    changed = _changed(run, report)
    # While it drains, each report counts as a sign of life, also one without news.
    draining = not run.wanted and run.closed_at is None
    if changed or draining or run.reported_at is None:
        # With its closing record a run has said the last word: a report that was on its way speaks of before.
        open_still = Run.objects.filter(pk=run.pk, closed_at=None)
        going_on = open_still.exclude(state__in=(RunPhase.LOST, RunPhase.INTERRUPTED))
        if not going_on.update(reported_at=now, **changed):
            # What was given up keeps the counts that did it.
            others = {name: value for name, value in changed.items() if name not in COUNTED}
            open_still.filter(state=RunPhase.INTERRUPTED).update(reported_at=now, **others)
    _accept_state(run, report, now)
    if report.handled and run.activation.trial:
        activation = run.activation_id
        transaction.on_commit(lambda: end_trial(activation, now), robust=True)


def _accept_state(run: Run, report: RunReport, now: datetime) -> None:
    """A run that was given up stays so under its epoch, also while its last handlers finish."""
    if run.closed_at is not None or run.state == report.state.value or run.state == RunPhase.INTERRUPTED:
        return
    if report.state is RunState.INTERRUPTED:
        if run.activation.state in OPEN_ACTIVATIONS and mark_interrupted(run, now):
            note_interrupted(run, report.counts, now)
        return
    moving = Run.objects.filter(pk=run.pk, closed_at=None)
    moving.exclude(state__in=(RunPhase.LOST, RunPhase.INTERRUPTED)).update(
        state=report.state.value, reported_at=now
    )


def _newest(runs: Iterable[Run]) -> dict[UUID, Run]:
    newest: dict[UUID, Run] = {}
    for run in runs:
        if run.activation_id not in newest or run.epoch > newest[run.activation_id].epoch:
            newest[run.activation_id] = run
    return newest


def _claimed(report: RunReport) -> dict[str, Any]:
    return {
        "handled": bounded(report.handled, BIGGEST_TOTAL),
        "restarts": bounded(report.restarts, BIGGEST_TOTAL),
        "repeats": bounded(report.repeats, BIGGEST_TOTAL),
        "in_progress": bounded(report.in_progress, BIGGEST),
        "connected": report.connected,
        **counted(report.counts),
        "problems": [Reason.reported(problem) for problem in report.problems[:MOST_OF_RUN]],
        "blocked": _blocked(report.blocked),
    }


def _blocked(blocked: BlockedMessage | None) -> Any:
    if blocked is None:
        return None
    seconds, key = blocked.retry_seconds, blocked.key[:LONGEST_KEY]
    wait = seconds if seconds is not None and 0 <= seconds < BIGGEST else None
    return dump(BlockedMessage(key, bounded(blocked.attempt, BIGGEST), wait))


def counted(counts: BreakerCounts) -> dict[str, Any]:
    """The columns of a run that keep them."""
    return {
        "same_type": storable(counts.same_type)[:255],
        "same_count": bounded(counts.same, BIGGEST),
        "any_count": bounded(counts.any, BIGGEST),
        "counted_marks": [storable(mark)[:MARK_LENGTH] for mark in counts.marks[-MOST_MARKS:]],
    }


def bounded(number: int, most: int) -> int:
    return max(0, min(number, most))


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
