"""What a child process is told about the run it works for."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kma.asking import Question, Reply


def _never() -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Job:
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
