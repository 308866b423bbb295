"""What spark-submit runs: --plan plan.json. Archives what is planned, then does the jobs, over one session.

Each stage stands for itself: one that fails is told in report.json, the others go on. The exit code is 0 also
then; 1: the run came to no report, 2: the plan is none.
"""

import argparse
import json
import os
import platform
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession

from pipeline import crash, schemas
from pipeline.archive.quarantine import guarded
from pipeline.archive.reading import Archive
from pipeline.archive.source import Source
from pipeline.archive.stages import archive_stage
from pipeline.jobs_of_run import JOBS
from pipeline.plan import Plan, PlanError, read
from pipeline.run import Run
from pipeline.session import build, fitted

# -- how far a run is ----------------------------------------------------------------------------------------
# One line of JSON per step, so that whoever reads the file sees it grow.


EVERY = 1.0  # seconds


class Progress:
    """Several threads may tell at once."""

    def __init__(self, path: Path) -> None:
        self._path, self._lock = path, threading.Lock()

    def stages(self, names: Sequence[str]) -> None:
        self._write({"stages": list(names)})

    def tell(self, stage: str, state: str, done: int = 0, total: int = 0, **more: Any) -> None:
        """`state`: running, done, failed or skipped. `total` 0: nobody knows."""
        self._write(
            {
                "at": datetime.now(UTC).isoformat(),
                "stage": stage,
                "state": state,
                "done": done,
                "total": total,
                **more,
            }
        )

    def _write(self, told: dict[str, Any]) -> None:
        with self._lock, self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(told) + "\n")


class Watch:
    """Tells, while it is open, how many tasks of the stage's Spark jobs are done: of those that Spark knows
    by then, which become more."""

    def __init__(self, context: SparkContext, progress: Progress, stage: str) -> None:
        self._tracker, self._progress, self._stage = context.statusTracker(), progress, stage
        self._ended = threading.Event()
        self._told = (0, 0)
        context.setJobGroup(stage, stage)
        self._thread = threading.Thread(target=self._run, name=f"progress of {stage}", daemon=True)

    def __enter__(self) -> "Watch":
        self._progress.tell(self._stage, "running")
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.wait(EVERY):
            tasks = self._tasks()
            if tasks != self._told:
                self._told = tasks
                self._progress.tell(self._stage, "running", *tasks)

    def _tasks(self) -> tuple[int, int]:
        done = total = 0
        for job in self._tracker.getJobIdsForGroup(self._stage):
            found = self._tracker.getJobInfo(job)
            for each in found.stageIds if found else ():
                stage = self._tracker.getStageInfo(each)
                if stage is not None:
                    done, total = done + stage.numCompletedTasks, total + stage.numTasks
        return done, total


ARCHIVE = "archive"
REPORT = "report.json"
LONGEST_PROBLEM = 2000  # characters


class Application:
    def __init__(self, session: SparkSession, plan: Plan) -> None:
        self._session, self._plan = session, plan
        self._progress = Progress(plan.progress)
        self._archive = Archive(session, plan.archive)
        self._stages: list[dict[str, Any]] = []
        self._archived: dict[str, Any] = {}

    def run(self) -> dict[str, Any]:
        """The report, which is also written."""
        names = list(self._plan.jobs if self._plan.jobs is not None else JOBS)
        unknown = [name for name in names if name not in JOBS]
        if unknown:
            raise PlanError(f"unknown jobs: {', '.join(unknown)}")
        archives = bool(self._plan.blocks or self._plan.verify)
        self._progress.stages([*([ARCHIVE] if archives else []), *names])
        if archives:
            self._stage(ARCHIVE, self._archiving)
        run = Run(self._session, self._plan, self._archive)
        for name in (name for name in JOBS if name in names):
            self._stage(name, lambda name=name: self._job(name, run))  # type: ignore[misc]
        run.drop()
        results = [asdict(each) for each in run.results]
        self._bring_home([each["table"] for each in results])
        return self._report(results, run.new_blocks)

    def _archiving(self) -> int:
        assert self._plan.source is not None
        done = archive_stage(
            self._session, self._plan.blocks, self._plan.verify, Source.of_plan(self._plan.source,
            os.environ),
            self._archive, lambda done, of: self._progress.tell(ARCHIVE, "running", done, of),
        )  # fmt: skip
        self._archived = asdict(done)
        return sum(int(each["rows"]) for each in done.written)

    def _job(self, name: str, run: Run) -> int | None:
        """Rows of its results; None: there was nothing new for it."""
        before = len(run.results)

        def act() -> bool:
            # Done again after a file was put aside: what it had written until then is written over.
            del run.results[before:]
            return JOBS[name](run)

        try:
            worked = guarded(self._archive, act)
        except BaseException:
            del run.results[before:]
            raise
        crash.point(f"job {name}: done")
        return sum(each.rows for each in run.results[before:]) if worked else None

    def _stage(self, name: str, act: Callable[[], int | None]) -> None:
        began = monotonic()
        told: dict[str, Any] = {"stage": name, "state": "done", "rows": 0, "error": ""}
        try:
            with Watch(self._session.sparkContext, self._progress, name):
                rows = act()
            told |= {"rows": rows or 0, "state": "skipped" if rows is None else "done"}
        except Exception as error:
            traceback.print_exc()
            told |= {"state": "failed", "error": f"{type(error).__name__}: {error}"[:LONGEST_PROBLEM]}
        told["seconds"] = round(monotonic() - began, 3)
        self._stages.append(told)
        ended = {key: value for key, value in told.items() if key not in ("stage", "state")}
        self._progress.tell(name, str(told["state"]), **ended)

    def _bring_home(self, tables: Sequence[str]) -> None:
        """Results of a cluster lie where all its machines write: the MA reads them here."""
        plan = self._plan
        if (
            plan.results.removeprefix("file://").rstrip("/") == str(plan.results_local).rstrip("/")
            or not tables
        ):
            return
        jvm: Any = self._session.sparkContext._jvm
        path = jvm.org.apache.hadoop.fs.Path
        configuration = self._session.sparkContext._jsc.hadoopConfiguration()
        system = path(plan.results).getFileSystem(configuration)
        for name in (*tables, "replaced"):
            if system.exists(path(f"{plan.results}/{name}")):
                plan.results_local.mkdir(parents=True, exist_ok=True)
                system.copyToLocalFile(
                    False, path(f"{plan.results}/{name}"), path(f"file://{plan.results_local}/{name}"), True
                )

    def _report(self, results: list[dict[str, Any]], computed: dict[str, list[int]]) -> dict[str, Any]:
        """Written aside and renamed as the last act: who sees it sees all of it."""
        plan = self._plan
        report = {
            "run": plan.run,
            "stages": self._stages,
            "results": results,
            "computed": computed,
            "archive": self._archived,
            "quarantined": self._archive.quarantined,
            "versions": {
                "spark": self._session.version,
                "python": platform.python_version(),
                "java": str(self._session.sparkContext._jvm.System.getProperty("java.version")),  # type: ignore[union-attr]
                "pipeline": schemas.VERSION,
            },
            "window": self._window(),
        }
        place = plan.report or plan.progress.with_name(REPORT)
        aside = place.with_name(f".{place.name}")
        aside.write_text(json.dumps(report, indent=1, default=str), "utf-8")
        crash.point("report: written")
        aside.rename(place)
        return report

    def _window(self) -> dict[str, str | None]:
        """The receipt of what the archive holds: `until` is exclusive."""
        every = self._archive.manifests("protocols").values()
        return {
            "from": min((each.first for each in every), default=None),
            "until": max((each.last for each in every), default=None),
        }


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="pipeline")
    parser.add_argument("--plan", type=Path, required=True)
    options = parser.parse_args(arguments)
    try:
        plan = read(options.plan)
        session = fitted(build(name=f"pipeline {plan.run}"))
        Application(session, plan).run()
    except PlanError as error:
        print(f"pipeline: {error}", file=sys.stderr)
        return 2
    session.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
