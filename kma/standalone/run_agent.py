"""One run of a standalone agent, from the import of its module to its end: what its process does, and the
test harness too.
"""

import sys
from collections.abc import Callable
from typing import Any

from contract.outcomes import Outcome
from kma.handling.failure import describe
from kma.handling.handler import RETURNED, HandlingResult, outcome_of
from kma.sdk.context import Context
from kma.sdk.errors import AgentStopped
from kma.sdk.registry import STANDALONE, Registered


class StopSignal:
    """Turns the stop signal into one AgentStopped in user code, never in the container's own lines.

    `asked` is the truth; the signal only wakes the main thread. One that nobody asked for raises nothing: a
    service manager that ends every process of a unit signals this one too, and the parent will ask when its
    turn comes.
    """

    def __init__(self, asked: Callable[[], bool]) -> None:
        self.asked = asked
        self._armed = False
        self._held = 0

    def signalled(self, *_: object) -> None:
        """The signal's handler, which Python calls in the main thread, between two of its instructions."""
        if self._armed and not self._held and self.asked():
            self._armed = False  # once: a second one would fall into the agent's cleaning up
            raise AgentStopped("the run was asked to stop")

    def arm(self) -> None:
        """From here on it may be raised; at once if the signal came before."""
        self._armed = True
        self.signalled()

    def unraisable(self, lost: "sys.UnraisableHookArgs") -> None:
        """In place of sys.unraisablehook: what is raised where Python has nobody to pass it on to (a
        destructor, a weak reference's callback, such as an import has them) is gone. The next signal raises
        it anew."""
        if isinstance(lost.exc_value, AgentStopped):
            self._armed = True
        else:
            sys.__unraisablehook__(lost)

    def disarm(self) -> None:
        self._armed = False

    def hold(self) -> None:
        """Main thread: not in the lines up to `release`, which must not be left half done."""
        self._held += 1

    def release(self) -> None:
        self._held -= 1
        self.signalled()


def run_once(find: Callable[[], Registered], context: Context, stop_signal: StopSignal) -> HandlingResult:
    """How the run ended. Importing the module and making the object belong to it: a standalone agent has no
    message that could wait until they work. Only what kills the process does not come back from here."""
    returned = False
    failed: BaseException | None = None
    try:
        try:
            stop_signal.arm()
            _made(find()).run_agent(context)
            returned = True
        except BaseException as error:
            failed = error
        stop_signal.disarm()
    except AgentStopped as late:
        # The signal fell into these lines: what the agent did before it is how it ended.
        failed = next(one for one in (failed, late.__context__, late) if one is not None)
    if returned and stop_signal.asked():
        # Whether it was done with its work nobody can tell, so it counts as stopped: where it is still
        # wanted, it begins again.
        failed = AgentStopped("run_agent returned after it was asked to stop")
    elif failed is None:
        return RETURNED
    return HandlingResult(_outcome(failed, stopping=stop_signal.asked()), describe(failed))


def _made(registered: Registered) -> Any:
    if registered.kind != STANDALONE:
        raise TypeError(f"agent {registered.name!r} is a message agent: it cannot run standalone")
    return registered.create()


def _outcome(error: BaseException, *, stopping: bool) -> Outcome:
    outcome = outcome_of(error, stopping=stopping)
    return Outcome.RAISED if outcome is Outcome.INVALID else outcome  # no message can be invalid here
