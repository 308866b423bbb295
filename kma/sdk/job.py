"""What a child process knows of the run it works for, and how its agent asks that run."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from contract.acknowledgements import Action

NOT_YET = "The outcome is not known yet."


@dataclass(frozen=True, slots=True)
class Question:
    """`sends` are (destination, encoded message): what the agent has sent so far, if it answers its own
    delivery; they belong to the commit. `seconds`: how long it waits."""

    acknowledgement: str
    action: Action
    seconds: float
    sends: tuple[tuple[str, bytes], ...] = ()


@dataclass(frozen=True, slots=True)
class AgentQuestion:
    """A question on its way to the run; its agent waits in the process `pid` for the reply to this `number`.
    `slot`: of the handling that asks."""

    pid: int
    slot: int
    number: int
    question: Question


@dataclass(frozen=True, slots=True)
class Reply:
    """`state` as in contract.acknowledgements.EndState, empty for an id that nobody knows. `temporary`: not
    known yet. `taken`: the sends of the question have been sent, or dropped, with the delivery."""

    state: str
    reason: str = ""
    temporary: bool = False
    taken: bool = False


def _never() -> bool:
    return False


@dataclass(frozen=True, slots=True)
class JobSpec:
    """`stopping` looks at the journal's flag, which the parent sets. `isolate`: a new process after each
    failure; `memory_bytes`: a new process once this one holds more (0 = no bound). `ask` passes an answer to
    a delivery on and waits for how it ended."""

    agent: str
    setting: str = ""
    activation: str = ""
    server: str = ""
    destination: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    modules: tuple[str, ...] = ()
    isolate: bool = False
    memory_bytes: int = 0
    log_level: str = "INFO"
    stopping: Callable[[], bool] = _never
    acknowledgement_property: str = "JBXAcknowledgmentTimeout"
    ask: "Callable[[Question], Reply] | None" = None
