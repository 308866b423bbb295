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
from alerts.models.notice import Channel, Notice, NoticeState, NoticeTarget

__all__ = [
    "LIVE_ALERTS",
    "Alert",
    "AlertEvaluation",
    "AlertRule",
    "AlertState",
    "AlertTransition",
    "Channel",
    "Notice",
    "NoticeState",
    "NoticeTarget",
    "Severity",
]
