"""What a KMA says of its runs: claims to the present. Those of an old epoch have no effect."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from agents.models import Run, RunPhase, Server
from contract.messages import RunReport

BIGGEST = 2**31 - 1
BIGGEST_TOTAL = 2**63 - 1


def accept_claims(server: Server, reports: Sequence[RunReport], now: datetime) -> None:
    """Writes only what changed. A claim about a run that is unknown, lost, or not the newest here is left aside."""
    runs = _newest(Run.objects.filter(server=server, activation__in={report.activation for report in reports}))
    for report in reports:
        run = runs.get(report.activation)
        if run is None or run.epoch != report.epoch or run.state == RunPhase.LOST:
            continue
        changed = {name: value for name, value in _claimed(report, run).items() if getattr(run, name) != value}
        # While it drains, each report counts as a sign of life, also one without news.
        draining = not run.wanted and run.closed_at is None
        if changed or draining or run.reported_at is None:
            current = Run.objects.filter(pk=run.pk).exclude(state=RunPhase.LOST)
            current.update(reported_at=now, **changed)


def _newest(runs: Iterable[Run]) -> dict[UUID, Run]:
    newest: dict[UUID, Run] = {}
    for run in runs:
        if run.activation_id not in newest or run.epoch > newest[run.activation_id].epoch:
            newest[run.activation_id] = run
    return newest


def _claimed(report: RunReport, run: Run) -> dict[str, Any]:
    values: dict[str, Any] = {
        "handled": bounded(report.handled, BIGGEST_TOTAL),
        "restarts": bounded(report.restarts, BIGGEST_TOTAL),
        "in_progress": bounded(report.in_progress, BIGGEST),
        "connected": report.connected,
        "same_type": report.counts.same_type[:255],
        "same_count": bounded(report.counts.same, BIGGEST),
        "any_count": bounded(report.counts.any, BIGGEST),
        "problem": report.problem[:2000],
    }
    if run.closed_at is None:
        values["state"] = report.state.value
    return values


def bounded(number: int, most: int) -> int:
    return max(0, min(number, most))
