"""How far a run is: one line of JSON per step, so that whoever reads the file sees it grow."""

import json
import threading
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pyspark import SparkContext

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
