"""The product's side: runs of the application by spark-submit in local mode, as the MA starts them."""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import pipeline_rows

ROOT = Path(__file__).resolve().parent.parent
# Of the JVM: with what it needs beside its heap, and Python, below the 4 GB that the whole may take.
HEAP = "2400m"
CORES = 2
JAVA_OPTIONS = "-XX:+UseParallelGC"  # as insights.runs.spark has it


@dataclass(frozen=True, slots=True)
class Ran:
    """`seconds` from the start of the process to its end; `megabytes`: the peak of all its processes
    together."""

    seconds: float
    megabytes: float
    report: Mapping[str, Any]
    results: Path


def run(archive: Path, folder: Path, name: str, new_blocks: Mapping[str, Sequence[int]], now: str) -> Ran:
    """Raises RuntimeError where a stage failed."""
    place = folder / name
    place.mkdir(parents=True)
    plan = {
        "run": name, "now": now, "archive": str(archive), "results": str(place / "results"),
        "progress": str(place / "progress.jsonl"), "new_blocks": new_blocks,
        "settings": list(pipeline_rows.settings()),
        "retention": {"silent_days": 90}, "database_bytes": 10_000_000_000,
    }  # fmt: skip
    (place / "plan.json").write_text(json.dumps(plan), "utf-8")
    seconds, peak = submitted(place, ["--conf", f"spark.local.dir={place / 'spill'}"], {}, name)
    report = json.loads((place / "report.json").read_text("utf-8"))
    if failed := [stage for stage in report["stages"] if stage["state"] == "failed"]:
        raise RuntimeError(f"{name}: {failed}")
    return Ran(seconds, peak, report, place / "results")


def submitted(place: Path, options: Sequence[str], more: Mapping[str, str], name: str) -> tuple[float, float]:
    """Runs the application by the plan in `place` to its end: seconds, and MB at the peak. Raises
    RuntimeError with the end of its log where it fails."""
    submit = Path(sys.executable).with_name("spark-submit")
    command = [
        str(submit),
        "--master",
        f"local[{CORES}]",
        "--driver-memory",
        HEAP,
        "--conf",
        "spark.ui.enabled=false",
    ]
    command += ["--conf", f"spark.driver.defaultJavaOptions={JAVA_OPTIONS}", *options]
    command += [str(ROOT / "pipeline" / "application.py"), "--plan", str(place / "plan.json")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable}
    environment |= {"PYSPARK_DRIVER_PYTHON": sys.executable, **more}
    began = time.monotonic()
    with (place / "log").open("wb") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, cwd=place)
        watch = Memory(process.pid)
        code = process.wait()
    seconds, peak = time.monotonic() - began, watch.end()
    if code:
        raise RuntimeError(f"{name} ended with {code}:\n{(place / 'log').read_text('utf-8')[-3000:]}")
    return seconds, peak


class Memory:
    """The most that a process and its descendants hold, looked at twice a second."""

    def __init__(self, pid: int) -> None:
        self._pid, self._peak, self._ended = pid, 0, threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def end(self) -> float:
        """MB."""
        self._ended.set()
        self._thread.join()
        return self._peak / 1024

    def _run(self) -> None:
        while not self._ended.wait(0.5):
            self._peak = max(self._peak, sum(map(_resident, _family(self._pid))))


def _family(pid: int) -> list[int]:
    found = [pid]
    for each in found:
        try:
            found += map(int, Path(f"/proc/{each}/task/{each}/children").read_text().split())
        except OSError:
            continue
    return found


def _resident(pid: int) -> int:
    """KB."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("VmRSS")), 0)
