"""The jobs of the pipeline by name, as `pipeline.application` knows them, and the tables that each fills."""

from collections.abc import Iterable, Mapping, Sequence

from django.db import models
from django.utils.functional import Promise
from django.utils.translation import pgettext_lazy

from failures.models import (
    ActivationHealth,
    BreakerBacktest,
    BreakerSuggestion,
    FailureDay,
    FailureTrend,
    OddServer,
    PoisonProfile,
    ReplaySuccess,
    RetentionPlan,
)

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
    "failure_trends": pgettext_lazy("a job of the pipeline", "trends of failures"),
    "activation_health": pgettext_lazy("a job of the pipeline", "health of activations"),
    "breaker_backtest": pgettext_lazy("a job of the pipeline", "limits of breakers"),
    "replay_success": pgettext_lazy("a job of the pipeline", "success of giving back"),
    "odd_servers": pgettext_lazy("a job of the pipeline", "odd servers"),
    "poison_profile": pgettext_lazy("a job of the pipeline", "poison messages"),
    "retention_plan": pgettext_lazy("a job of the pipeline", "plan of retention"),
}


def unknown(names: Iterable[str]) -> list[str]:
    return sorted(set(names) - JOBS.keys())
