"""Where a run has its files: `plan.json`, `progress.jsonl`, `run.log`, `report.json`, `results/`."""

import shutil
from pathlib import Path

from django.conf import settings

from failures.models import PipelineRun


class RunFolder:
    def __init__(self, run: PipelineRun) -> None:
        self.path = Path(settings.MA_DATA) / "pipeline" / str(run.pk)

    @property
    def plan(self) -> Path:
        return self.path / "plan.json"

    @property
    def progress(self) -> Path:
        return self.path / "progress.jsonl"

    @property
    def log(self) -> Path:
        return self.path / "run.log"

    @property
    def report(self) -> Path:
        return self.path / "report.json"

    @property
    def results(self) -> Path:
        return self.path / "results"

    @property
    def sources(self) -> Path:
        return self.path / "pipeline.zip"

    def make(self) -> None:
        self.path.mkdir(parents=True, exist_ok=True, mode=0o700)

    def forget_results(self) -> None:
        """They are in the database; plan, report and log stay as long as the run."""
        shutil.rmtree(self.results, ignore_errors=True)
        self.sources.unlink(missing_ok=True)

    def forget(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)


LOG_TAIL = 64 * 1024


def tail_of_log(run: PipelineRun, size: int = LOG_TAIL) -> str:
    """The last part of it, whole lines; empty where there is none (any more) on this host."""
    try:
        with RunFolder(run).log.open("rb") as file:
            length = file.seek(0, 2)
            file.seek(max(0, length - size))
            part = file.read(size)
    except OSError:
        return ""
    if length > size:
        part = part.partition(b"\n")[2]
    return part.decode(errors="replace")
