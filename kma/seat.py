"""A place for one child process and what it holds."""

from dataclasses import dataclass

from kma.handling import Handled
from kma.process import ChildProcess
from kma.work import Work

SMALL = 64 * 1024  # bytes of a message of which two may wait in a child


@dataclass(frozen=True, slots=True)
class Ended:
    """One handling that is over. `seconds` since `run_agent` began, 0 where it is not measured (success)."""

    work: Work
    handled: Handled
    pid: int = 0
    seconds: float = 0.0


class Seat:
    """A place for one child process; processes come and go, the seat keeps count of their early deaths."""

    def __init__(self) -> None:
        self.process: ChildProcess | None = None
        self.held: list[Work] = []
        self.recalled: set[int] = set()  # slots that the child will answer with SKIPPED
        self.unsent: list[bytes] = []
        self.ready = False
        self.leaving = False
        self.useful = False  # this process has ended a handling
        self.early_deaths = 0
        self.start_at = 0.0
        self.killed_as: Handled | None = None
        self.writing = False

    def room(self, size: int) -> bool:
        if not self.ready or self.leaving or self.recalled:
            return False
        if not self.held:
            return True
        return len(self.held) == 1 and size <= SMALL and len(self.held[0].encoded) <= SMALL
