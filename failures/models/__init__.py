"""Rows of the failures app, one file per resource."""

from failures.models.archive import ArchiveBlock, ArchiveErasure, BlockState, Recomputation
from failures.models.insight import (
    ActivationHealth,
    BreakerBacktest,
    BreakerSuggestion,
    FailureDay,
    FailureTrend,
    InsightTable,
    OddServer,
    PoisonProfile,
    ReplaySuccess,
    RetentionPlan,
    Standing,
)
from failures.models.known_error import Advice, FingerprintAct, FingerprintChange, KnownError
from failures.models.pipeline_run import LOADED_RUNS, OPEN_RUNS, PipelineRun, PipelineState, PipelineTrigger
from failures.models.protocol import FailureProtocol, RecoveredMessage
from failures.models.retention import RetentionFigure, RetentionRun, RetentionState
from failures.models.spool import IntakeDebt, RecordConflict, RefusedRecord, SetAside, SpoolMark
from failures.models.tally import (
    FailureDelta,
    FailureGroup,
    Fingerprint,
    FingerprintHour,
    FingerprintVersion,
    FoldMark,
)

__all__ = [
    "LOADED_RUNS",
    "OPEN_RUNS",
    "ActivationHealth",
    "Advice",
    "ArchiveBlock",
    "ArchiveErasure",
    "BlockState",
    "BreakerBacktest",
    "BreakerSuggestion",
    "FailureDay",
    "FailureDelta",
    "FailureGroup",
    "FailureProtocol",
    "FailureTrend",
    "Fingerprint",
    "FingerprintAct",
    "FingerprintChange",
    "FingerprintHour",
    "FingerprintVersion",
    "FoldMark",
    "InsightTable",
    "IntakeDebt",
    "KnownError",
    "OddServer",
    "PipelineRun",
    "PipelineState",
    "PipelineTrigger",
    "PoisonProfile",
    "Recomputation",
    "RecordConflict",
    "RecoveredMessage",
    "RefusedRecord",
    "ReplaySuccess",
    "RetentionFigure",
    "RetentionPlan",
    "RetentionRun",
    "RetentionState",
    "SetAside",
    "SpoolMark",
    "Standing",
]
