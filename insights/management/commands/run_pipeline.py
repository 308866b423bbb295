"""The process that works on one run of the pipeline; `pipeline run` and the worker start it."""

import signal
import sys
from argparse import ArgumentParser
from types import FrameType
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand

from insights.models import LOADED_RUNS
from insights.runs.worker import work_on_run


class Command(BaseCommand):
    help = (
        "Executes a queued run of the pipeline: plan, Spark application, results. See "
        "docs/explanation/pipeline.md."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("run", type=UUID)

    def handle(self, *args: Any, **options: Any) -> None:
        # A shell starts what goes on in the background with SIGINT ignored.
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, _stop)
        run = work_on_run(options["run"])
        if run is not None and run.state not in LOADED_RUNS:
            sys.exit(1)


def _stop(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)
