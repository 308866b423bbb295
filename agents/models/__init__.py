"""Rows of the agents app, one file per resource."""

from agents.models.acknowledgement import WAITING_STATES, Acknowledgement, AcknowledgementState
from agents.models.activation import Activation, ActivationState, Ending, Run, RunPhase, Trigger, Withheld
from agents.models.alert import (
    LIVE_ALERTS,
    Alert,
    AlertEvaluation,
    AlertRule,
    AlertState,
    AlertTransition,
    Severity,
)
from agents.models.component import ComponentCondition, ComponentState
from agents.models.destination import Destination
from agents.models.found_policy import FoundPolicy
from agents.models.grant import PoolGrant
from agents.models.group import GroupActivation, GroupActivationState, GroupMember, ScheduledGroup
from agents.models.history import StateChange
from agents.models.notice import Channel, Notice, NoticeState, NoticeTarget
from agents.models.poison import PoisonPolicy
from agents.models.pool import Pool
from agents.models.schedule import Missed, Schedule, Window, WindowResult
from agents.models.server import Duty, OfferedAgent, Server, ServerState, ServerToken
from agents.models.setting import Kind, LaunchSetting, ProvisionState, Spread, Timing
from agents.models.sign_in import SignInCounter
from agents.models.site import SiteIdentity
from agents.models.subscription import SubscriptionState
from agents.models.trip import BreakerTrip, BreakReason, Interruption

__all__ = [
    "LIVE_ALERTS",
    "WAITING_STATES",
    "Acknowledgement",
    "AcknowledgementState",
    "Activation",
    "ActivationState",
    "Alert",
    "AlertEvaluation",
    "AlertRule",
    "AlertState",
    "AlertTransition",
    "BreakReason",
    "BreakerTrip",
    "Channel",
    "ComponentCondition",
    "ComponentState",
    "Destination",
    "Duty",
    "Ending",
    "FoundPolicy",
    "GroupActivation",
    "GroupActivationState",
    "GroupMember",
    "Interruption",
    "Kind",
    "LaunchSetting",
    "Missed",
    "Notice",
    "NoticeState",
    "NoticeTarget",
    "OfferedAgent",
    "PoisonPolicy",
    "Pool",
    "PoolGrant",
    "ProvisionState",
    "Run",
    "RunPhase",
    "Schedule",
    "ScheduledGroup",
    "Server",
    "ServerState",
    "ServerToken",
    "Severity",
    "SignInCounter",
    "SiteIdentity",
    "Spread",
    "StateChange",
    "SubscriptionState",
    "Timing",
    "Trigger",
    "Window",
    "WindowResult",
    "Withheld",
]
