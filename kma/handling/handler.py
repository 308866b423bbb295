"""An agent from its modules, and one message through it: in a child process, and in the test harness."""

import importlib
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from contract.outcomes import Outcome
from kma.handling.failure import FailureDetails, describe
from kma.sdk import registry
from kma.sdk.context import Context
from kma.sdk.errors import AgentStopped, InvalidMessage, TemporaryUnavailable, UnknownAgent
from kma.sdk.job import JobSpec
from kma.sdk.message import Message
from kma.sdk.registry import MESSAGE, Registered
from kma.spool.journal import NO_TIMESTAMP


def load(agent: str, modules: Iterable[str]) -> registry.Registered:
    """Raises UnknownAgent, or what a module raised that cannot be imported when that is most likely why."""
    failed: list[BaseException] = []
    for module in modules:
        try:
            importlib.import_module(module)
        except BaseException as error:  # a module that exits must not stop the agents of the others
            failed.append(error)
    try:
        return registry.find(agent)
    except UnknownAgent:
        if failed:
            raise failed[0] from None
        raise


@dataclass(frozen=True, slots=True)
class HandlingResult:
    """`sends` are (destination, encoded message), empty unless the outcome is RETURNED."""

    outcome: Outcome
    failure: FailureDetails | None = None
    sends: tuple[tuple[str, bytes], ...] = ()

    def measured(self, memory_peak: int) -> "HandlingResult":
        """The same of a process that could not measure itself any more."""
        if self.failure is None:
            return self
        return replace(self, failure=replace(self.failure, memory_peak=memory_peak))


RETURNED = HandlingResult(Outcome.RETURNED)


class Handler:
    """Owns the agent object. `renew` makes a new one; it raises what the agent's constructor raises."""

    def __init__(self, registered: Registered, job: JobSpec) -> None:
        if registered.kind != MESSAGE:
            raise TypeError(f"agent {registered.name!r} is {registered.kind}: it accepts no messages")
        self._create = registered.create
        self._job = job
        self._run: Callable[[Message, Context], Any]
        self._sent_ms: int | None = None
        self.renew()

    def renew(self) -> None:
        self._run = self._create().run_agent

    def handle(self, encoded: bytes, attempt: int, acknowledgement: str = "") -> HandlingResult:
        """How the handling ended. Only what kills the process does not come back from here."""
        try:
            message = Message(encoded, self._job.destination, attempt)
            self._sent_ms = message.sent_ms
            context = Context(self._job, message, acknowledgement)
            self._run(message, context)
            return (
                HandlingResult(Outcome.RETURNED, None, tuple(context._sends)) if context._sends else RETURNED
            )
        except BaseException as error:
            # SystemExit and KeyboardInterrupt of user code too: only AgentStopped is no failure (spec 2.1).
            return HandlingResult(outcome_of(error, stopping=self._job.stopping()), describe(error))

    def since_sent(self) -> float:
        """Seconds since the producer sent the message that was handled last; below 0 where its clock goes
        ahead, NO_TIMESTAMP where the message does not say when."""
        sent_ms = self._sent_ms
        return NO_TIMESTAMP if sent_ms is None else time.time() - sent_ms / 1000


def outcome_of(error: BaseException, *, stopping: bool) -> Outcome:
    """AgentStopped without a stop is a failure like any other: nobody would give its message back."""
    if isinstance(error, TemporaryUnavailable):
        return Outcome.TEMPORARY
    if isinstance(error, InvalidMessage):
        return Outcome.INVALID
    if isinstance(error, AgentStopped) and stopping:
        return Outcome.RELEASED
    return Outcome.RAISED
