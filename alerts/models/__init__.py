"""Alerts with what happened to them, and who is told of them."""

from alerts.models.alert import (
    LIVE_ALERTS,
    Alert,
    AlertEvaluation,
    AlertRule,
    AlertState,
    AlertTransition,
    Severity,
)
from alerts.models.notice import (
    SECRET_ADDRESSES,
    SIGNED,
    Channel,
    Event,
    EventKind,
    LeastSeverity,
    Notice,
    NoticeState,
    NoticeTarget,
    is_secret,
)

__all__ = [
    "LIVE_ALERTS",
    "SECRET_ADDRESSES",
    "SIGNED",
    "Alert",
    "AlertEvaluation",
    "AlertRule",
    "AlertState",
    "AlertTransition",
    "Channel",
    "Event",
    "EventKind",
    "LeastSeverity",
    "Notice",
    "NoticeState",
    "NoticeTarget",
    "Severity",
    "is_secret",
]
