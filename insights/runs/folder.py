"""Describes where a run has its files: `plan.json`, `progress.jsonl`, `run.log`, `report.json`,
`results/`."""

import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from django.conf import settings
from django.db import models
from django.utils.functional import Promise
from django.utils.translation import pgettext_lazy

from insights.models import (
    ActivationHealth,
    BreakerBacktest,
    BreakerSuggestion,
    FailureDay,
    FailureTrend,
    OddServer,
    PipelineRun,
    PoisonProfile,
    ReplaySuccess,
    RetentionPlan,
)


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


# -- jobs of the pipeline by name, and the tables that each fills --------------------------------------------


JOBS: Mapping[str, Sequence[str]] = {
    "failure_trends": ("failure_trends", "failure_days"),
    "activation_health": ("activation_health",),
    "breaker_backtest": ("breaker_backtest", "breaker_suggestions"),
    "replay_success": ("replay_success",),
    "odd_servers": ("odd_servers",),
    "poison_profile": ("poison_profile",),
    "retention_plan": ("retention_plan",),
}
TABLES: Mapping[str, type[models.Model]] = {
    "failure_trends": FailureTrend,
    "failure_days": FailureDay,
    "activation_health": ActivationHealth,
    "breaker_backtest": BreakerBacktest,
    "breaker_suggestions": BreakerSuggestion,
    "replay_success": ReplaySuccess,
    "odd_servers": OddServer,
    "poison_profile": PoisonProfile,
    "retention_plan": RetentionPlan,
}
LABELS: Mapping[str, Promise] = {
    "failure_trends": pgettext_lazy("a job of the pipeline", "failure trends"),
    "activation_health": pgettext_lazy("a job of the pipeline", "activation health"),
    "breaker_backtest": pgettext_lazy("a job of the pipeline", "breaker thresholds"),
    "replay_success": pgettext_lazy("a job of the pipeline", "replay success rate"),
    "odd_servers": pgettext_lazy("a job of the pipeline", "server comparison"),
    "poison_profile": pgettext_lazy("a job of the pipeline", "poison messages"),
    "retention_plan": pgettext_lazy("a job of the pipeline", "deletion plan"),
}


def unknown(names: Iterable[str]) -> list[str]:
    return sorted(set(names) - JOBS.keys())
