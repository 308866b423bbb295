"""Rows of the agents app, one file per resource."""

from agents.models.acknowledgement import WAITING_STATES, Acknowledgement, AcknowledgementState
from agents.models.activation import (
    Activation,
    ActivationState,
    Ending,
    Run,
    RunPhase,
    StateChange,
    Trigger,
    Withheld,
)
from agents.models.destination import Destination, FoundPolicy, SubscriptionState
from agents.models.freeze import Freeze, HeldKind, HeldStart, MaintenanceWindow
from agents.models.group import GroupActivation, GroupActivationState, GroupMember, ScheduledGroup
from agents.models.message_policy import PoisonPolicy
from agents.models.pool import Pool, PoolGrant
from agents.models.schedule import Missed, Schedule, Timing, Window, WindowResult
from agents.models.server import Duty, OfferedAgent, Server, ServerState, ServerStop, ServerToken
from agents.models.setting import Hold, LaunchSetting, ProvisionState, SettingKind, Spread
from agents.models.site import ComponentCondition, ComponentState, SignInCounter, SiteIdentity
from agents.models.trip import BreakerTrip, BreakReason, Interruption

__all__ = [
    "WAITING_STATES",
    "Acknowledgement",
    "AcknowledgementState",
    "Activation",
    "ActivationState",
    "BreakReason",
    "BreakerTrip",
    "ComponentCondition",
    "ComponentState",
    "Destination",
    "Duty",
    "Ending",
    "FoundPolicy",
    "Freeze",
    "GroupActivation",
    "GroupActivationState",
    "GroupMember",
    "HeldKind",
    "HeldStart",
    "Hold",
    "Interruption",
    "LaunchSetting",
    "MaintenanceWindow",
    "Missed",
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
    "ServerStop",
    "ServerToken",
    "SettingKind",
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
