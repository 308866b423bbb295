"""How many deliveries a run takes in advance: enough to keep its children busy, bounded in bytes."""

PER_CHILD = 25
BOUND_BYTES = 64 * 1024 * 1024


class Window:
    """Begins small and doubles while messages are small, because credit that the broker has used cannot be taken back:
    a queue of 20 MB messages must not fill the memory before the first was seen."""

    def __init__(self, concurrency: int, bound_bytes: int = BOUND_BYTES) -> None:
        self._least = concurrency
        self._most = PER_CHILD * concurrency
        self._bound = bound_bytes
        self._largest = 1.0
        self._seen = 0
        self.size = min(self._most, 2 * concurrency)

    def saw(self, size: int) -> bool:
        """A message of `size` bytes came; whether the window is another one now."""
        self._largest = max(float(size), self._largest * 0.99)  # a large one is forgotten after some hundred small
        self._seen += 1
        allowed = max(self._least, min(self._most, int(self._bound / self._largest)))
        if allowed < self.size:
            self._seen, self.size = 0, allowed
            return True
        if self.size < allowed and self._seen >= self.size:
            self._seen, self.size = 0, min(allowed, 2 * self.size)
            return True
        return False
