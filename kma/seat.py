"""A place for one child process and what it holds."""

from dataclasses import dataclass

from kma.handling import Handled
from kma.process import ChildProcess
from kma.work import Work

SMALL = 64 * 1024  # bytes of a message of which several may wait in a child


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
        self.halted_by = -1  # slot of the failure after which the child waits for GO_ON
        self.ready = False
        self.leaving = False
        self.useful = False  # this process has ended a handling
        self.early_deaths = 0
        self.start_at = 0.0
        self.killed_as: Handled | None = None
        self.writing = False

    def room(self, size: int, depth: int) -> bool:
        """Whether a message of `size` bytes may go to this child; small ones wait there, at most `depth` with it."""
        if not self.ready or self.leaving or self.recalled:
            return False
        held = self.held
        return not held or (len(held) < depth and size <= SMALL and len(held[-1].encoded) <= SMALL)
