"""Applies retention now, or tells what it would do."""

import json
import time
from argparse import ArgumentParser
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from console.audit.log import account_of, record
from retention import text
from retention.models import RetentionRun, RetentionState
from retention.preview import preview, preview_ages
from retention.worker import run_retention_turn

# Between two looks whether the one that is at it has ended or died.
WAIT_SECONDS = 1.0
# Settings of which nothing goes that are told one by one.
MOST_TOLD = 50


class Command(BaseCommand):
    help = (
        "Deletes failure protocols and other data past their retention period. See "
        "docs/explanation/retention.md."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--dry-run",
            action="store_true",
            help="delete nothing; show per setting what would be deleted and why",
        )
        parser.add_argument("--json", action="store_true", help="one JSON object per line")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["dry_run"]:
            lines = _foreseen_json() if options["json"] else _foreseen_lines()
        else:
            lines = (_json(row) if options["json"] else text.retention_line(row) for row in self._applied())
        for line in lines:
            self.stdout.write(line)

    def _applied(self) -> Iterator[text.Row]:
        # Before anything goes: a command that is killed in between has deleted something.
        now, target = timezone.now(), "retention:"
        record("retention.apply", by=None, now=now, target=target, detail=account_of(None))
        run = _worked()
        for figure in run.figures.all():
            yield text.of_figure(figure)
        if run.state == RetentionState.FAILED:
            raise CommandError(f"Retention is incomplete: {run.problem}")


def _json(row: text.Row) -> str:
    return json.dumps(row, ensure_ascii=False)


def _foreseen_json() -> Iterator[str]:
    """A row for each range that holds something, and of what has a time of its own; where none does, an empty
    list with the rule in force."""
    none = True
    for _key, found in preview(timezone.now()):
        for each in found:
            if each.holds:
                none = False
                yield _json(text.of_preview(each))
    for going in preview_ages(timezone.now()):
        none = False
        yield _json(text.of_age_preview(going))
    if none:
        yield _json({"would_go": [], "rule": text.rule_in_force()})


def _foreseen_lines() -> Iterator[str]:
    """Of settings of which nothing goes why that is so; of more than MOST_TOLD of them how many they are.
    Last what is of no setting, and what has a time of its own."""
    nothing: list[str] = []
    count = 0
    for key, found in preview(timezone.now()):
        lines = [text.retention_line(text.of_preview(each)) for each in found if each.holds]
        if not key:
            yield from nothing if count <= MOST_TOLD else [f"{count} settings: nothing to delete"]
            yield from lines or [text.nothing_line(key, found)]
        elif lines:
            yield from lines
        else:
            count += 1
            if count <= MOST_TOLD:
                nothing.append(text.nothing_line(key, found))
    for going in preview_ages(timezone.now()):
        yield text.retention_line(text.of_age_preview(going))


def _worked() -> RetentionRun:
    """Step by step until a run has ended; while another process is at it, after it. Raises CommandError where
    that one takes longer than a dead one is waited for."""
    patience = time.monotonic() + 2 * RetentionRun.lease.total_seconds()
    while time.monotonic() < patience:
        run = run_retention_turn(timezone.now(), every=timedelta(0))
        if run is None:
            time.sleep(WAIT_SECONDS)
            continue
        if run.state != RetentionState.RUNNING:
            return run
        patience = time.monotonic() + 2 * RetentionRun.lease.total_seconds()
    raise CommandError("Another process is running retention. See its progress on the page Retention.")
