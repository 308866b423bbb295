"""One message through an agent: what a child process does with each, and the test harness too."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from contract.outcomes import Outcome
from kma.agent import AgentStopped, Context, InvalidMessage, Message, TemporaryUnavailable
from kma.failure import Failure, describe
from kma.job import Job
from kma.received import Received
from kma.registry import MESSAGE, Registered


@dataclass(frozen=True, slots=True)
class Handled:
    """`sends` are (destination, encoded message), empty unless the outcome is RETURNED."""

    outcome: Outcome
    failure: Failure | None = None
    sends: tuple[tuple[str, bytes], ...] = ()

    def measured(self, memory_peak: int) -> "Handled":
        """The same of a process that could not measure itself any more."""
        if self.failure is None:
            return self
        return replace(self, failure=replace(self.failure, memory_peak=memory_peak))


RETURNED = Handled(Outcome.RETURNED)


class Handler:
    """Owns the agent object. `renew` makes a new one; it raises what the agent's constructor raises."""

    def __init__(self, registered: Registered, job: Job) -> None:
        if registered.kind != MESSAGE:
            raise TypeError(f"agent {registered.name!r} is {registered.kind}: it takes no messages")
        self._create = registered.create
        self._job = job
        self._run: Callable[[Message, Context], Any]
        self.renew()

    def renew(self) -> None:
        self._run = self._create().run_agent

    def handle(self, encoded: bytes, attempt: int, acknowledgement: str = "") -> Handled:
        """How the handling ended. Only what kills the process does not come back from here."""
        try:
            message = Message(Received(encoded, self._job.destination), attempt)
            context = Context(self._job, message, acknowledgement)
            self._run(message, context)
            return Handled(Outcome.RETURNED, None, tuple(context._sends)) if context._sends else RETURNED
        except BaseException as error:
            # SystemExit and KeyboardInterrupt of user code too: only AgentStopped is no failure (spec 2.1).
            return Handled(outcome_of(error, stopping=self._job.stopping()), describe(error))


def outcome_of(error: BaseException, *, stopping: bool) -> Outcome:
    """AgentStopped without a stop is a failure like any other: nobody would give its message back."""
    if isinstance(error, TemporaryUnavailable):
        return Outcome.TEMPORARY
    if isinstance(error, InvalidMessage):
        return Outcome.INVALID
    if isinstance(error, AgentStopped) and stopping:
        return Outcome.RELEASED
    return Outcome.RAISED
