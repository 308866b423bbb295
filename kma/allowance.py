"""How many messages a run may begin and take in advance: by its window, one at a time on trial, none over its
limit."""

from contract.messages import DesiredRun
from kma.window import Window


class Allowance:
    """One thread. `ended`: handlings of this run that are over, also before a restart of the KMA."""

    def __init__(self, desired: DesiredRun, ended: int) -> None:
        self.window = Window(desired.concurrency)
        self._one = desired.ordered
        self.limit = desired.limit_messages
        self.ended = ended

    @property
    def reached(self) -> bool:
        """As many handlings as the run may begin are over."""
        return 0 < self.limit <= self.ended

    def credit(self, *, on_trial: bool) -> int:
        """Deliveries that may be unsettled at a time."""
        most = 1 if on_trial or self._one else self.window.size
        return min(most, max(0, self.limit - self.ended)) if self.limit else most

    def begin(self, holding: int, committing: int, *, on_trial: bool) -> int | None:
        """Messages that may go to children now, None = as many as they take. `holding`: with children
        already; `committing`: over, and their transactions are not."""
        bounds = []
        if on_trial:
            bounds.append(0 if holding or committing else 1)
        if self.limit:
            bounds.append(max(0, self.limit - self.ended - holding))
        return min(bounds, default=None)
