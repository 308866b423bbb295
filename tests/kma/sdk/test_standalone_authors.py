"""What authors of standalone agents meet: registration, the harness, and the moment at which a stop falls."""

import inspect
import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from contract.outcomes import Outcome
from kma.agent import Agent, AgentStopped, Context, InvalidMessage, StandaloneAgent, TemporaryUnavailable
from kma.handling.handler import HandlingResult
from kma.sdk import registry
from kma.sdk.context import StandaloneContext
from kma.sdk.job import JobSpec
from kma.standalone.run_agent import StopSignal, run_once
from kma.testing import run_agent, run_standalone


def kind_of(target: Any) -> str:
    return registry.registration_of("x", "", "", target).kind


def test_an_agent_without_a_message_is_standalone() -> None:
    class One(StandaloneAgent):
        def run_agent(self, context: Context, verbose: bool = False) -> None: ...

    class Other:
        @staticmethod
        def run_agent(context: Context) -> None: ...

    class WithMessage:
        @classmethod
        def run_agent(cls, message: Any, context: Context, **more: Any) -> None: ...

    assert (
        kind_of(One)
        == kind_of(Other)
        == kind_of(lambda context: None)
        == kind_of(StandaloneAgent)
        == "standalone"
    )
    assert kind_of(WithMessage) == kind_of(Agent) == kind_of(lambda message, context: None) == "message"


async def _async(context: Context) -> None: ...


def _generator(context: Context) -> Any:
    yield


@pytest.mark.parametrize(
    ("target", "why"),
    [
        (lambda: None, "run_agent must accept"),
        (lambda a, b, c: None, "run_agent must accept"),
        (lambda context, *, more: None, "run_agent must accept"),
        (lambda *all: None, "run_agent must accept"),
        (lambda message: None, "the context parameter is missing"),
        (_async, "async"),
        (_generator, "generator"),
        (7, "has no run_agent"),
    ],
)
def test_what_could_never_be_called_rightly_is_refused_with_the_reason(target: Any, why: str) -> None:
    with pytest.raises(TypeError, match=why):
        registry.registration_of("x", "", "", target)


def test_the_harness_runs_it_as_the_container_does() -> None:
    def ending(error: BaseException) -> Callable[[Context], None]:
        def run(context: Context) -> None:
            context.send("a", "sent all the same")
            raise error

        return run

    for error, outcome in (
        (KeyError("x"), Outcome.RAISED),
        (InvalidMessage("x"), Outcome.RAISED),
        (TemporaryUnavailable("x"), Outcome.TEMPORARY),
        (SystemExit(0), Outcome.RAISED),
        (AgentStopped("on its own"), Outcome.RAISED),
    ):
        result = run_standalone(ending(error))
        assert (result.outcome, len(result.sent)) == (outcome, 1), error
    assert run_standalone(lambda context: None).ok
    with pytest.raises(TypeError, match="accepts no messages"):
        run_agent(lambda context: None)
    assert run_standalone(lambda message, context: None).outcome is Outcome.RAISED


def test_a_stop_is_raised_once_and_except_exception_lets_it_pass() -> None:
    cleaned = []

    def run(context: Context) -> None:
        try:
            time.sleep(60)
            cleaned.append("slept")
        except Exception:
            cleaned.append("swallowed")
        finally:
            time.sleep(0.2)
            cleaned.append("up")

    assert run_standalone(run, stop_after=0.1).outcome is Outcome.RELEASED
    assert cleaned == ["up"]


def test_who_returns_after_being_asked_has_stopped_not_finished() -> None:
    def run(context: Context) -> None:
        while not context.stopping:
            try:
                time.sleep(0.01)
            except AgentStopped:
                return

    assert run_standalone(run, stop_after=0.1).outcome is Outcome.RELEASED


class Line:
    """Runs an agent, and lets the stop fall at one of the lines around it."""

    def __init__(self, agent: Callable[[Context], None], at: str) -> None:
        self.asked = False
        self.at = at
        self.stopper = StopSignal(lambda: self.asked)
        self.agent = agent

    def stop(self, at: str) -> None:
        if at == self.at:
            self.asked = True
            self.stopper.signalled()

    def run(self) -> HandlingResult:
        line = self

        class Watched(StopSignal):
            def arm(self) -> None:
                line.stop("before")
                super().arm()
                line.stop("armed")

            def disarm(self) -> None:
                line.stop("after")
                super().disarm()
                line.stop("disarmed")

        self.stopper = Watched(lambda: self.asked)
        found = registry.registration_of("x", "", "", self.agent)
        context = StandaloneContext(JobSpec(agent="x"), lambda destination, encoded: None)
        handled = run_once(lambda: found, context, self.stopper)
        self.stop("told")
        return handled


@pytest.mark.parametrize("at", ["before", "armed", "after", "disarmed"])
def test_a_stop_around_a_good_run_is_a_stop(at: str) -> None:
    begun = []
    handled = Line(lambda context: begun.append(1), at).run()
    assert handled.outcome is Outcome.RELEASED
    assert begun == ([] if at in ("before", "armed") else [1])


@pytest.mark.parametrize("at", ["after", "disarmed", "told"])
def test_a_stop_right_after_a_failure_does_not_hide_it(at: str) -> None:
    def run(context: Context) -> None:
        raise KeyError("sku")

    handled = Line(run, at).run()
    assert handled.outcome is Outcome.RAISED and handled.failure is not None
    assert handled.failure.exception_type == "KeyError"


def test_a_stop_in_the_very_moment_of_a_failure_does_not_hide_it() -> None:
    def run(context: Context) -> None:
        raise KeyError("sku")

    lines, first = inspect.getsourcelines(run_once)
    moment = first + next(number for number, line in enumerate(lines) if "failed = error" in line)
    asked: list[bool] = []
    stopper = StopSignal(lambda: bool(asked))

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        if frame.f_code is not run_once.__code__:
            return None
        if event == "line" and frame.f_lineno == moment:
            asked.append(True)
            stopper.signalled()
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        context = StandaloneContext(JobSpec(agent="x"), lambda destination, encoded: None)
        handled = run_once(lambda: registry.registration_of("x", "", "", run), context, stopper)
    finally:
        sys.settrace(before)
    assert asked and handled.outcome is Outcome.RAISED and handled.failure is not None
    assert handled.failure.exception_type == "KeyError"


def test_nothing_is_raised_in_lines_that_must_be_ended() -> None:
    stopper = StopSignal(lambda: True)
    stopper.hold()
    stopper.arm()
    stopper.signalled()
    with pytest.raises(AgentStopped):
        stopper.release()
    stopper.signalled()
