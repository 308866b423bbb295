"""The Spark application of a run: how it is started, in a process group of its own, and watched until it
ends."""

import os
import re
import subprocess
import sys
import time
import zipfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from django.conf import settings

from console.database.storage import KeyUnreadable
from console.jobs import detached
from console.reasons import Reason
from insights.archive import planning
from insights.archive.readiness import submit_program
from insights.reasons import APPLICATION_ENDED, KEY_UNREADABLE, NO_SUBMIT, TOO_LARGE, TOO_LONG
from insights.runs.folder import RunFolder
from insights.runs.loader import drivers
from insights.runs.progress import Progress
from insights.runs.start import Hold, RunLost

LOOK_SECONDS = 0.5
# Of the memory of all processes of a run: the rest is for Python, threads and what the JVM holds beside its
# heap.
HEAP_SHARE = 0.6
# All at once and then none: pages of a large run are too big for the usual collector, which moves them again
# and again.
JAVA_OPTIONS = "-XX:+UseParallelGC"
COLLECTOR = re.compile(r"-XX:\+Use\w+GC\b")
# By it `./ma down` finds what is left of this installation.
KEPT = ("MA_RUN_FOLDER",)
# It dies with the runner, also where that one is killed: prctl(PR_SET_PDEATHSIG, SIGKILL), then the program
# itself.
_TIED = (
    "import ctypes, os, sys; ctypes.CDLL(None).prctl(1, 9); "
    "os.getppid() == int(sys.argv[1]) or sys.exit(1); os.execv(sys.argv[2], sys.argv[2:])"
)


class RunCancelled(Exception):
    """A person ended it."""


class RunFailed(Exception):
    """It ended without a result."""

    def __init__(self, why: Reason) -> None:
        super().__init__(why)
        self.why = why


@dataclass(frozen=True, slots=True)
class Submitted:
    """`peak`: bytes that all its processes held together."""

    stages: list[dict[str, object]]
    peak: int


def submit(hold: Hold, folder: RunFolder) -> Submitted:
    """Returns when the application has ended well. Raises RunCancelled, RunFailed, RunLost; then nothing of
    it runs."""
    _ship(folder)
    until = time.monotonic() + timedelta(hours=settings.MA_PIPELINE_HOURS).total_seconds()
    progress, peak = Progress(folder.progress), 0
    with folder.log.open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-I", "-c", _TIED, str(os.getpid()), *command(hold, folder)],
            cwd=folder.path, env=_environment(hold), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            process_group=0,
        )  # fmt: skip
        try:
            while process.poll() is None:
                peak = max(peak, _check(hold, until))
                if progress.poll():
                    hold.report_stages(progress.stages)
                time.sleep(LOOK_SECONDS)
        finally:
            detached.end(hold.run.pk)
            process.kill()  # one that had not begun yet is not found by what it was started with
            process.wait()
    progress.poll()
    hold.report(stages=progress.stages, memory_peak_bytes=peak)
    if process.returncode:
        raise RunFailed(APPLICATION_ENDED(status=process.returncode, words=_last_words(folder.log)))
    return Submitted(progress.stages, peak)


def _check(hold: Hold, until: float) -> int:
    """Bytes that it holds now."""
    if hold.lost.is_set():
        raise RunLost(f"pipeline run {hold.run.pk} was taken over")
    if hold.wanted_off.is_set():
        raise RunCancelled
    if time.monotonic() > until:
        raise RunFailed(TOO_LONG(hours=settings.MA_PIPELINE_HOURS))
    held, limit = detached.memory_of(detached.of_run(hold.run.pk)), settings.MA_PIPELINE_MEMORY_MB
    if held > limit * 1024 * 1024:
        raise RunFailed(TOO_LARGE(mb=limit))
    return held


def command(hold: Hold, folder: RunFolder) -> list[str]:
    program, master = submit_program(), hold.run.master
    if program is None:
        raise RunFailed(NO_SUBMIT())
    options = ["--name", f"ma-pipeline-{hold.run.pk}", "--master", master]
    options += ["--driver-memory", f"{int(settings.MA_PIPELINE_MEMORY_MB * HEAP_SHARE)}m"]
    options += ["--py-files", str(folder.sources)]
    if jars := [str(path) for path in drivers()]:
        options += ["--jars", ",".join(jars), "--driver-class-path", os.pathsep.join(jars)]
    if settings.MA_PIPELINE_PROPERTIES:
        options += ["--properties-file", settings.MA_PIPELINE_PROPERTIES]
    for name, value in _configuration(folder, master):
        options += ["--conf", f"{name}={value}"]
    application = Path(settings.BASE_DIR) / "pipeline" / "application.py"
    return [str(program), *options, str(application), "--plan", str(folder.plan)]


def _configuration(folder: RunFolder, master: str) -> list[tuple[str, str]]:
    values = [
        ("spark.ui.enabled", "false"),
        ("spark.ui.showConsoleProgress", "false"),
        ("spark.sql.session.timeZone", "UTC"),
    ]
    if is_local(master):
        # What a killed one leaves goes with the folder of its run.
        values += [("spark.local.dir", str(folder.path / "spark")), ("spark.driver.host", "127.0.0.1")]
        values += [("spark.driver.bindAddress", "127.0.0.1")]
        if not _chosen_collector():
            values += [("spark.driver.defaultJavaOptions", JAVA_OPTIONS)]
    return values


def _chosen_collector() -> bool:
    """Returns whether somebody has chosen one for this host: a JVM that is told of two does not start."""
    known = detached.environment()
    told = [known.get(name, "") for name in ("JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS")]
    if settings.MA_PIPELINE_PROPERTIES:
        with suppress(OSError):
            told.append(Path(settings.MA_PIPELINE_PROPERTIES).read_text("utf-8", "replace"))
    return any(COLLECTOR.search(text) for text in told)


def is_local(master: str) -> bool:
    return master.startswith("local")


def _environment(hold: Hold) -> dict[str, str]:
    """Gives it, of all secrets of the site, the account of the database alone. Raises RunFailed."""
    try:
        database = planning.environment()
    except KeyUnreadable as error:
        raise RunFailed(KEY_UNREADABLE(key=str(error.key), converted=str(error.converted))) from error
    kept = {
        name: value
        for name, value in detached.environment().items()
        if name in KEPT or not name.startswith("MA_")
    }
    return kept | {
        detached.MARK: str(hold.run.pk),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYTHONUNBUFFERED": "1",
        **database,
    }


SHIPPED = ("contract", "pipeline")


def _ship(folder: RunFolder) -> None:
    """The sources that executors on other hosts need."""
    with zipfile.ZipFile(folder.sources, "w", zipfile.ZIP_DEFLATED) as file:
        for path in _sources():
            file.write(path, path.relative_to(settings.BASE_DIR))


def _sources() -> Sequence[Path]:
    return sorted(path for name in SHIPPED for path in (Path(settings.BASE_DIR) / name).rglob("*.py"))


def _last_words(log: Path) -> str:
    """The last line of it that names an error; the log has the rest."""
    with log.open("rb") as file:
        length = file.seek(0, 2)
        file.seek(max(0, length - 32768))
        lines = file.read().decode(errors="replace").splitlines()
    told = [line.strip() for line in lines if "Error" in line or "Exception" in line]
    return (told or [line.strip() for line in lines if line.strip()] or ["no output"])[-1][:500]
