"""Runs an agent without any server, through the very code that a child process uses.

result = run_agent(Orders, as_json({"order": 7}))
assert result.outcome is Outcome.RETURNED
assert result.sent[0].destination == "shop.invoices"

waiting = run_agent(Payment, as_json({"order": 7}), client=True)
assert waiting.answer is None  # a handling of the mode CLIENT that returned unanswered

assert run_standalone(NightlyReport, parameters={"day": "2026-11-20"}).ok
"""

import json
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from contract.acknowledgements import END_OF, Action
from contract.outcomes import Outcome
from kma.handling.failure import FailureDetails
from kma.handling.handler import Handler, HandlingResult
from kma.sdk import registry
from kma.sdk.context import StandaloneContext
from kma.sdk.encoding import encoded_message
from kma.sdk.job import JobSpec, Question, Reply
from kma.sdk.message import Message
from kma.standalone.run_agent import StopSignal, run_once

__all__ = ["ACKNOWLEDGEMENT", "Action", "Outcome", "Result", "Sent", "as_json", "run_agent", "run_standalone"]

ACKNOWLEDGEMENT = "acknowledgement-of-the-test"


@dataclass(frozen=True, slots=True)
class Sent:
    """A message that the agent sent."""

    destination: str
    message: Message

    def json(self) -> Any:
        return self.message.json()


@dataclass(frozen=True, slots=True)
class Result:
    """`failure` is what the protocol would say (type, text, traceback, place), None when the agent returned.

    In the mode CLIENT `answer` is how the agent answered its own delivery, None for not at all, and `answers`
    are all that it gave, as (acknowledgement id, action)."""

    outcome: Outcome
    failure: FailureDetails | None
    sent: tuple[Sent, ...]
    answer: Action | None = None
    answers: tuple[tuple[str, Action], ...] = ()

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
    client: bool = False,
    **message: Any,
) -> Result:
    """One handling of one message by a new agent object. `agent` is a class, a function or a registered name.

    `body` as for `context.send`; a dict or list that is meant as JSON goes through `as_json`. `message` takes
    what `context.send` takes (message_id, correlation_id, …); `encoded` is a whole AMQP message instead.
    `client`: the mode CLIENT, in which the delivery has the id ACKNOWLEDGEMENT; every answer succeeds, the
    first to each id.
    """
    registered = _registered(agent)
    desk = _Desk()
    job = replace(_job(registered, parameters, lambda: stopping, destination), ask=desk.ask)
    if encoded is None:
        encoded = encoded_message(body, properties or {}, **message)
    handled = Handler(registered, job).handle(encoded, attempt, ACKNOWLEDGEMENT if client else "")
    return desk.result(handled)


def run_standalone(
    agent: Any, *, parameters: Mapping[str, Any] | None = None, stop_after: float | None = None
) -> Result:
    """One run of a standalone agent: a class, a function or a registered name.

    `stop_after`: asks it to stop after so many seconds, as the container does: `context.stopping` is true
    from then on and AgentStopped is raised where it is, once; the outcome is RELEASED when it ends by that.
    Then this has to be called in the main thread. `sent` is what it had sent, however it ended.
    """
    sends: list[tuple[str, bytes]] = []
    registered = _registered(agent)
    asked = _Asked()
    stop_signal = StopSignal(asked)
    job = _job(registered, parameters, asked, "")
    context = StandaloneContext(job, lambda destination, encoded: sends.append((destination, encoded)))
    with _alarm(stop_after, asked, stop_signal):
        handled = run_once(lambda: registered, context, stop_signal)
    return Result(handled.outcome, handled.failure, _sent(sends))


class _Desk:
    """Takes every answer, the first to each delivery."""

    def __init__(self) -> None:
        self._answers: dict[str, Action] = {}
        self._committed: tuple[tuple[str, bytes], ...] = ()

    def ask(self, question: Question) -> Reply:
        action = self._answers.get(question.acknowledgement)
        if action is not None:
            state = END_OF[action].value
            return Reply(state, f"The delivery is {state} already.")
        self._answers[question.acknowledgement] = question.action
        if question.action is Action.COMMIT:
            self._committed += question.sends
        return Reply(END_OF[question.action].value, taken=True)

    def result(self, handled: HandlingResult) -> Result:
        own = self._answers.get(ACKNOWLEDGEMENT)
        outcome = handled.outcome
        if own is Action.ROLLBACK:
            outcome = Outcome.ROLLED_BACK
        elif own is Action.COMMIT and handled.failure is not None:
            outcome = Outcome.RAISED_AFTER_COMMIT
        sent = _sent((*self._committed, *handled.sends))
        return Result(outcome, handled.failure, sent, own, tuple(self._answers.items()))


class _Asked:
    """Whether the run was asked to stop."""

    def __init__(self) -> None:
        self.true = False

    def __call__(self) -> bool:
        return self.true


@contextmanager
def _alarm(seconds: float | None, asked: _Asked, stop_signal: StopSignal) -> Iterator[None]:
    def ring(*_: object) -> None:
        asked.true = True
        stop_signal.signalled()

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
) -> JobSpec:
    return JobSpec(
        agent=registered.name,
        setting="test",
        activation="00000000-0000-0000-0000-000000000000",
        server="test",
        destination=destination,
        parameters=parameters or {},
        stopping=stopping,
    )


def _sent(sends: Iterable[tuple[str, bytes]]) -> tuple[Sent, ...]:
    return tuple(Sent(to, Message(content, to)) for to, content in sends)


def _registered(target: Any) -> registry.Registered:
    if isinstance(target, str):
        return registry.find(target)
    known = next((one for one in registry.offered() if one.create is target), None)
    return known or registry.registration_of(getattr(target, "__qualname__", str(target)), "", "", target)
