"""What the archive has to do in a run."""

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from failures.models import PipelineRun


def drivers() -> list[Path]:
    return []


def plan(run: PipelineRun, now: datetime) -> dict[str, Any]:
    return {"blocks": [], "verify": [], "new_blocks": {}}


def take(
    report: Mapping[str, Any], planned: Mapping[str, Any], run: PipelineRun, now: datetime, computed: bool
) -> None:
    """Inside the transaction that loads the results."""


def foreseen(now: datetime) -> dict[str, int]:
    """Rows by kind that the next run would archive; nothing is planned by asking."""
    return {}
