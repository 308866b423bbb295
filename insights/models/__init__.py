"""Rows of the insights app, one file per resource."""

from insights.models.archive import ArchiveBlock, BlockState, Recomputation
from insights.models.pipeline_run import LOADED_RUNS, OPEN_RUNS, PipelineRun, PipelineState, PipelineTrigger
from insights.models.results import (
    ActivationHealth,
    BreakerBacktest,
    BreakerSuggestion,
    DayStatus,
    FailureDay,
    FailureTrend,
    InsightTable,
    OddServer,
    PoisonProfile,
    ReplaySuccess,
    RetentionPlan,
)

__all__ = [
    "LOADED_RUNS",
    "OPEN_RUNS",
    "ActivationHealth",
    "ArchiveBlock",
    "BlockState",
    "BreakerBacktest",
    "BreakerSuggestion",
    "DayStatus",
    "FailureDay",
    "FailureTrend",
    "InsightTable",
    "OddServer",
    "PipelineRun",
    "PipelineState",
    "PipelineTrigger",
    "PoisonProfile",
    "Recomputation",
    "ReplaySuccess",
    "RetentionPlan",
]
