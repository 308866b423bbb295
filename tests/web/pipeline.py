"""Runs of the pipeline with a stand-in for Spark."""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.utils import timezone

from insights.models import PipelineRun, PipelineTrigger
from insights.runs.start import request_run
from insights.runs.worker import work_on_run

STAND_IN = Path(__file__).parent / "spark_stand_in.py"


def stand_in(folder: Path, mode: str) -> str:
    """The path of a program that takes the place of spark-submit."""
    program = folder / f"spark-{mode.replace(' ', '-')}"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{STAND_IN}" "{mode}" "$@"\n')
    program.chmod(0o755)
    return str(program)


def use(settings: Any, folder: Path, mode: str) -> None:
    settings.MA_DATA = folder / "data"
    settings.MA_ARCHIVE_URL = f"file://{folder}/archive"
    settings.MA_PIPELINE_SUBMIT = stand_in(folder, mode)


def asked(**more: Any) -> PipelineRun:
    return request_run(PipelineTrigger.PAGE, timezone.now(), **more)


def worked(**more: Any) -> PipelineRun:
    """A run from its begin to its end, in this process."""
    run = work_on_run(asked(**more).pk)
    assert run is not None
    return run


def until(check: Callable[[], Any], seconds: float = 60) -> Any:
    end = time.monotonic() + seconds
    while not (found := check()):
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)
    return found
