"""manage.py pipeline run|status|cancel: the data pipeline from a terminal."""

import json
import sys
import time
from argparse import ArgumentParser
from datetime import UTC, datetime
from datetime import time as day_time
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone
from django.utils.dateparse import parse_date, parse_datetime

from console.operations.operation import Done, Operation, perform
from console.operations.refusals import Refused
from insights.archive.readiness import readiness
from insights.models import LOADED_RUNS, PipelineRun
from insights.runs import progress
from insights.runs.folder import JOBS, tail_of_log
from insights.runs.loader import preview_archive
from insights.runs.operations import CancelPipelineRun, StartPipelineRun
from insights.runs.reaper import reap
from insights.runs.start import start_waiting

LOOK_SECONDS = 0.5


class Command(BaseCommand):
    help = "Runs the data pipeline, shows its progress or cancels it. See docs/how-to/pipeline.md."

    def add_arguments(self, parser: ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
        run = actions.add_parser("run", help="start a run with all or the named jobs, and wait for its end")
        run.add_argument("jobs", nargs="*", metavar="JOB", help=", ".join(JOBS))
        run.add_argument("--since", type=_instant, help="only failures since this date or time (UTC)")
        run.add_argument("--until", type=_instant, help="only failures before this date or time (UTC)")
        run.add_argument("--anew", action="store_true", help="recompute all data, not only new data")
        run.add_argument("--master", default="", help="Spark master instead of MA_PIPELINE_MASTER")
        run.add_argument("--dry-run", action="store_true", help="start nothing; show what a run would do")
        run.add_argument(
            "--no-wait",
            action="store_true",
            help="return after the start; the run continues in the background",
        )
        status = actions.add_parser("status", help="show the current run, or else the last one")
        status.add_argument("--log", action="store_true", help="show the end of its log, too")
        ending = actions.add_parser("cancel", help="cancel the current run")
        for each in (run, status, ending):
            each.add_argument("--json", action="store_true", help="one JSON object per line")

    def handle(self, *args: Any, **options: Any) -> None:
        self.as_json = bool(options["json"])
        {"run": self._run, "status": self._status, "cancel": self._cancel}[options["action"]](options)

    def _run(self, options: dict[str, Any]) -> None:
        now = timezone.now()
        if options["dry_run"]:
            self._foresee(options, now)
            return
        asked = {name: options[name] for name in ("jobs", "since", "until", "master", "anew")}
        run: PipelineRun = _performed(StartPipelineRun, PipelineRun(), **asked).made
        start_waiting(timezone.now())
        if options["no_wait"]:
            self._tell(run)
            return
        try:
            run = self._follow(run)
        except KeyboardInterrupt:
            self.stderr.write("The run continues in the background: `pipeline status`, `pipeline cancel`.")
            sys.exit(130)
        self._tell(run)
        if run.state not in LOADED_RUNS or run.problem:
            sys.exit(1)

    def _foresee(self, options: dict[str, Any], now: datetime) -> None:
        ready = readiness()
        jobs = options["jobs"] or list(JOBS)
        archive = preview_archive(now)
        told = {"ready": ready.ready, "problem": ready.says, "jobs": jobs, "archive": archive}
        if self.as_json:
            self.stdout.write(json.dumps(told, ensure_ascii=False))
            return
        self.stdout.write(ready.says or "ready")
        self.stdout.write(f"jobs: {', '.join(jobs)}")
        for kind, count in archive.items():
            self.stdout.write(f"{kind}: {count}")

    def _follow(self, run: PipelineRun) -> PipelineRun:
        """Until it is over; one line that is written over on a terminal, else a line whenever it changes."""
        last = ""
        while run.is_open:
            time.sleep(LOOK_SECONDS)
            reap(timezone.now())
            start_waiting(timezone.now())
            run = PipelineRun.objects.get(pk=run.pk)
            text = json.dumps(progress.of_run(run)) if self.as_json else progress.run_line(run)
            if text != last and run.is_open:
                self._progress(text, last)
            last = text
        if self._over_itself:
            self.stdout.write("")
        return run

    @property
    def _over_itself(self) -> bool:
        return not self.as_json and self.stdout.isatty()

    def _progress(self, text: str, last: str) -> None:
        if self._over_itself:
            self.stdout.write(f"\r{text:<{len(last)}}", ending="")
            self.stdout.flush()
        else:
            self.stdout.write(text)

    def _status(self, options: dict[str, Any]) -> None:
        reap(timezone.now())
        run = PipelineRun.objects.order_by("-asked_at", "-pk").first()
        if run is None:
            self.stdout.write(json.dumps(None) if self.as_json else readiness().says or "No runs yet.")
            return
        self._tell(run)
        if options["log"]:
            self.stdout.write(tail_of_log(run))

    def _cancel(self, options: dict[str, Any]) -> None:
        run = PipelineRun.objects.filter(open=True).first()
        if run is None:
            raise CommandError("No run is in progress.")
        _performed(CancelPipelineRun, run)
        while run.is_open:
            time.sleep(LOOK_SECONDS)
            reap(timezone.now())
            run = PipelineRun.objects.get(pk=run.pk)
        self._tell(run)

    def _tell(self, run: PipelineRun) -> None:
        if self.as_json:
            self.stdout.write(json.dumps(progress.of_run(run), ensure_ascii=False))
        else:
            self.stdout.write("\n".join(progress.run_lines(run)))


def _performed(operation: type[Operation[PipelineRun]], run: PipelineRun, **asked: Any) -> Done:
    """Performs it as whoever is at the terminal. Raises CommandError where it is refused."""
    try:
        return perform(operation, run, None, **asked)
    except Refused as refused:
        raise CommandError(refused.sentence) from refused


def _instant(text: str) -> datetime:
    """A day or an instant; without a zone it is UTC. Raises ValueError, which argparse tells."""
    day = parse_date(text)
    found = datetime.combine(day, day_time.min, UTC) if day else parse_datetime(text)
    if found is None:
        raise ValueError(text)
    return found if found.tzinfo else found.replace(tzinfo=UTC)
