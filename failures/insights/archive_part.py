"""What the archive has to do in a run."""

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from django.conf import settings

from failures.archive import anew, planning, results
from failures.models import PipelineRun


def drivers() -> list[Path]:
    """Jars by which Spark reads this database."""
    return [Path(path) for path in settings.MA_PIPELINE_DRIVERS]


def plan(run: PipelineRun, now: datetime) -> dict[str, Any]:
    return planning.plan(now)


def take(
    report: Mapping[str, Any], planned: Mapping[str, Any], run: PipelineRun, now: datetime, computed: bool
) -> None:
    """Inside the transaction that loads the results."""
    restored = results.take_report(report, now)
    if computed:
        results.mark_computed(planned["new_blocks"], run)
        anew.done(planned["anew_requests"])
    if restored and not planned["anew_requests"]:
        anew.ask("damaged rows of the archive can be read again")


def foreseen(now: datetime) -> dict[str, int]:
    """Rows by kind that the next run would archive; nothing is planned by asking."""
    return planning.foreseen(now)
