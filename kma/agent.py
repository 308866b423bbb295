"""What agent authors import.

    from kma.agent import Agent, Context, InvalidMessage, Message, TemporaryUnavailable, agent

    @agent("shop.orders", version="1")
    class Orders(Agent):
        def run_agent(self, message: Message, context: Context) -> None:
            order = message.json()

Returning is success. `TemporaryUnavailable` and any other exception bring the message back later,
`InvalidMessage` sends it to the dead letters at once. An agent with `run_agent(self, context)` is standalone:
it is run by itself, not per message. docs/how-to/agents.md and docs/how-to/standalone-agents.md take a
newcomer through both. What stands behind
these names is in kma/sdk.
"""

from kma.sdk.context import Agent, Context, StandaloneAgent
from kma.sdk.errors import (
    AcknowledgementRefused,
    AgentStopped,
    InvalidMessage,
    SendRefused,
    TemporaryUnavailable,
)
from kma.sdk.message import Kind, Message
from kma.sdk.registry import agent

__all__ = [
    "AcknowledgementRefused",
    "Agent",
    "AgentStopped",
    "Context",
    "InvalidMessage",
    "Kind",
    "Message",
    "SendRefused",
    "StandaloneAgent",
    "TemporaryUnavailable",
    "agent",
]
