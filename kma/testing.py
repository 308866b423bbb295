"""Runs an agent without any server, through the very code that a child process uses.

result = run_agent(Orders, as_json({"order": 7}))
assert result.outcome is Outcome.RETURNED
assert result.sent[0].destination == "shop.invoices"

assert run_standalone(NightlyReport, parameters={"day": "2026-11-20"}).ok
"""

import json
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
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
from kma.standalone import StandaloneContext, Stopper, run_once

__all__ = ["Outcome", "Result", "Sent", "as_json", "run_agent", "run_standalone"]


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
    registered = _registered(agent)
    job = _job(registered, parameters, lambda: stopping, destination)
    if encoded is None:
        encoded = encoded_message(body, properties or {}, **message)
    handled = Handler(registered, job).handle(encoded, attempt)
    return Result(handled.outcome, handled.failure, _sent(handled.sends))


def run_standalone(
    agent: Any, *, parameters: Mapping[str, Any] | None = None, stop_after: float | None = None
) -> Result:
    """One run of a standalone agent: a class, a function or a registered name.

    `stop_after`: asks it to stop after so many seconds, as the container does: `context.stopping` is true from then on
    and AgentStopped is raised where it is, once; the outcome is GIVEN_BACK when it ends by that. Then this has to be
    called in the main thread. `sent` is what it had sent, however it ended.
    """
    sends: list[tuple[str, bytes]] = []
    registered = _registered(agent)
    asked = _Asked()
    stopper = Stopper(asked)
    job = _job(registered, parameters, asked, "")
    context = StandaloneContext(job, lambda destination, encoded: sends.append((destination, encoded)))
    with _alarm(stop_after, asked, stopper):
        handled = run_once(lambda: registered, context, stopper)
    return Result(handled.outcome, handled.failure, _sent(sends))


class _Asked:
    """Whether the run was asked to stop."""

    def __init__(self) -> None:
        self.true = False

    def __call__(self) -> bool:
        return self.true


@contextmanager
def _alarm(seconds: float | None, asked: _Asked, stopper: Stopper) -> Iterator[None]:
    def ring(*_: object) -> None:
        asked.true = True
        stopper.signalled()

    if seconds is None:
        yield
        return
    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-6))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def as_json(value: Any) -> str:
    """A body that `message.json()` reads back as `value`."""
    return json.dumps(value, ensure_ascii=False)


def _job(
    registered: registry.Registered,
    parameters: Mapping[str, Any] | None,
    stopping: Callable[[], bool],
    destination: str,
) -> Job:
    return Job(
        agent=registered.name,
        setting="test",
        activation="00000000-0000-0000-0000-000000000000",
        server="test",
        destination=destination,
        parameters=parameters or {},
        stopping=stopping,
    )


def _sent(sends: Iterable[tuple[str, bytes]]) -> tuple[Sent, ...]:
    return tuple(Sent(to, Message(Received(content, to), 1)) for to, content in sends)


def _registered(target: Any) -> registry.Registered:
    if isinstance(target, str):
        return registry.find(target)
    known = next((one for one in registry.offered() if one.create is target), None)
    return known or registry.describe(getattr(target, "__qualname__", str(target)), "", "", target)
