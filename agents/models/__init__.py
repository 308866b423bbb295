"""Rows of the agents app, one file per resource."""

from agents.models.activation import Activation, ActivationState, Run, RunPhase
from agents.models.beat import ProcessBeat
from agents.models.destination import Destination
from agents.models.history import StateChange
from agents.models.pool import Pool
from agents.models.server import OfferedAgent, Server, ServerState, ServerToken
from agents.models.setting import LaunchSetting, ProvisionState, Spread, Timing
from agents.models.token import ApiToken

__all__ = [
    "Activation",
    "ActivationState",
    "ApiToken",
    "Destination",
    "LaunchSetting",
    "OfferedAgent",
    "Pool",
    "ProcessBeat",
    "ProvisionState",
    "Run",
    "RunPhase",
    "Server",
    "ServerState",
    "ServerToken",
    "Spread",
    "StateChange",
    "Timing",
]
