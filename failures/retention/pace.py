"""How many rows go in one transaction: by the last one, such that others wait for a moment only. Pure."""

from dataclasses import dataclass

# Where a chunk keeps every writer waiting, at most 50 ms: half of it, because no chunk is like the one
# before.
AIM_SECONDS = 0.025
# Where it locks only the rows that go, and nobody writes these: so long that its commit is a small part of
# it, so short that the disk has not much to do at once.
AIM_SECONDS_ALONE = 0.1
LEAST, FIRST, MOST = 10, 50, 20_000


@dataclass(frozen=True, slots=True)
class Pace:
    """`aim`: seconds that a chunk should take."""

    size: int
    aim: float = AIM_SECONDS

    def after(self, rows: int, seconds: float) -> "Pace":
        """`seconds` is how long the transaction that deleted so many `rows` was open. It grows slowly and
        shrinks at once; a chunk that was not full says nothing of a larger one."""
        if not rows:
            return self
        wanted = int(rows * self.aim / max(seconds, 0.0001))
        if wanted >= self.size and rows < self.size:
            return self
        return Pace(max(LEAST, min(wanted, self.size * 3 // 2 + 1, MOST)), self.aim)
