"""Applies retention now, or tells what it would do."""

import json
import time
from argparse import ArgumentParser
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from failures.models import RetentionRun, RetentionState
from failures.retention import telling
from failures.retention.foreseeing import foresee
from failures.retention.running import LEASE
from failures.retention.turns import work

# Between two looks whether the one that is at it has ended or died.
WAIT_SECONDS = 1.0


class Command(BaseCommand):
    help = "Deletes failure protocols, and what else is kept for a time only, as docs/retention.md says."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--dry-run", action="store_true", help="delete nothing; say per setting what would go and why"
        )
        parser.add_argument("--json", action="store_true", help="one JSON object per line")

    def handle(self, *args: Any, **options: Any) -> None:
        rows = _foreseen() if options["dry_run"] else self._applied()
        for row in rows:
            text = json.dumps(row, ensure_ascii=False) if options["json"] else telling.line(row)
            self.stdout.write(text)

    def _applied(self) -> Iterator[telling.Row]:
        run = _worked()
        for figure in run.figures.all():
            yield telling.of_figure(figure)
        if run.state == RetentionState.FAILED:
            raise CommandError(f"Not everything could be done: {run.problem}")


def _foreseen() -> Iterator[telling.Row]:
    for each in foresee(timezone.now()):
        if each.going or each.kept:
            yield telling.of_foreseen(each)


def _worked() -> RetentionRun:
    """Turn by turn until a run has ended; while another process is at it, after it. Raises CommandError where that one
    takes longer than a dead one is waited for."""
    patience = time.monotonic() + 2 * LEASE.total_seconds()
    while time.monotonic() < patience:
        run = work(timezone.now(), every=timedelta(0))
        if run is None:
            time.sleep(WAIT_SECONDS)
            continue
        if run.state != RetentionState.RUNNING:
            return run
        patience = time.monotonic() + 2 * LEASE.total_seconds()
    raise CommandError("Another process is at it. The page Retention shows how far it is.")
