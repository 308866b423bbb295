"""Runs an agent without any server, through the very code that a child process uses.

result = run_agent(Orders, as_json({"order": 7}))
assert result.outcome is Outcome.RETURNED
assert result.sent[0].destination == "shop.invoices"
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from contract.outcomes import Outcome
from kma import registry
from kma.agent import Message
from kma.failure import Failure
from kma.handling import Handler
from kma.job import Job
from kma.outgoing import encoded_message
from kma.received import Received

__all__ = ["Outcome", "Result", "Sent", "as_json", "run_agent"]


@dataclass(frozen=True, slots=True)
class Sent:
    """A message that the agent sent."""

    destination: str
    message: Message

    def json(self) -> Any:
        return self.message.json()


@dataclass(frozen=True, slots=True)
class Result:
    """`failure` is what the protocol would say (type, text, traceback, place), None when the agent returned."""

    outcome: Outcome
    failure: Failure | None
    sent: tuple[Sent, ...]

    @property
    def ok(self) -> bool:
        return self.outcome is Outcome.RETURNED


def run_agent(
    agent: Any,
    body: Any = "",
    properties: Mapping[str, Any] | None = None,
    *,
    encoded: bytes | None = None,
    attempt: int = 1,
    parameters: Mapping[str, Any] | None = None,
    destination: str = "test.destination",
    stopping: bool = False,
    **message: Any,
) -> Result:
    """One handling of one message by a new agent object. `agent` is a class, a function or a registered name.

    `body` as for `context.send`; a dict or list that is meant as JSON goes through `as_json`. `message` takes what
    `context.send` takes (message_id, correlation_id, …); `encoded` is a whole AMQP message instead.
    """
    registered = registry.find(agent) if isinstance(agent, str) else _registered(agent)
    job = Job(
        agent=registered.name,
        setting="test",
        activation="00000000-0000-0000-0000-000000000000",
        server="test",
        destination=destination,
        parameters=parameters or {},
        stopping=lambda: stopping,
    )
    if encoded is None:
        encoded = encoded_message(body, properties or {}, **message)
    handled = Handler(registered, job).handle(encoded, attempt)
    sent = tuple(Sent(to, Message(Received(content, to), 1)) for to, content in handled.sends)
    return Result(handled.outcome, handled.failure, sent)


def as_json(value: Any) -> str:
    """A body that `message.json()` reads back as `value`."""
    return json.dumps(value, ensure_ascii=False)


def _registered(target: Any) -> registry.Registered:
    known = next((one for one in registry.offered() if one.create is target), None)
    return known or registry.describe(getattr(target, "__qualname__", str(target)), "", "", target)
