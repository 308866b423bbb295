"""How many messages a run may begin, and how many deliveries it takes in advance."""

from contract.messages import DesiredRun

PER_CHILD = 100
BOUND_BYTES = 64 * 1024 * 1024
PERIOD = 0.25  # seconds between two looks at the rate
LEAST_DEPTH, MOST_DEPTH = 2, 8


class PrefetchWindow:
    """Begins small, because credit that the broker has used cannot be taken back: a queue of 20 MB messages
    must not fill the memory before the first was seen. Stays small while handlings are slow: what waits here
    is kept from the other servers of the setting."""

    def __init__(self, concurrency: int, bound_bytes: int = BOUND_BYTES) -> None:
        self._concurrency = concurrency
        self._bound = bound_bytes
        self._largest = 1.0
        self._wanted = concurrency
        self._handled = 0
        self._since = 0.0
        self.size = self._wanted

    @property
    def depth(self) -> int:
        """Frames that a child may hold: two while handlings are slow, up to a third of its share of the
        window."""
        return max(LEAST_DEPTH, min(MOST_DEPTH, self.size // (3 * self._concurrency)))

    def saw(self, size: int) -> bool:
        """A message of `size` bytes came; whether the window is another one now."""
        self._largest = max(
            float(size), self._largest * 0.99
        )  # a large one is forgotten after some hundred small
        return self._set()

    def handled(self, number: int, now: float) -> bool:
        """So many handlings have ended; whether the window is another one now."""
        self._handled += number
        seconds = now - self._since
        if seconds < PERIOD:
            return False
        a_second = int(self._handled / seconds)
        self._handled, self._since = 0, now
        most, least = PER_CHILD * self._concurrency, self._concurrency
        self._wanted = max(least, min(a_second, most))
        return self._set()

    def _set(self) -> bool:
        before = self.size
        self.size = max(self._concurrency, min(self._wanted, int(self._bound / self._largest)))
        return self.size != before


class Credit:
    """One thread. `ended`: handlings of this run that are over, also before a restart of the KMA."""

    def __init__(self, desired: DesiredRun, ended: int) -> None:
        self.window = PrefetchWindow(desired.concurrency)
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
