"""Decides how fast a replay moves and how long it still takes, from its latest slices. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

# A look at so many slices is steady and still follows a change of the pace.
LATEST = 20
# Nothing was checked for so long: what was before says nothing of now.
STALE = timedelta(minutes=2)


@dataclass(frozen=True, slots=True)
class Moved:
    """A slice that was checked: `size` dead letters between these two instants."""

    size: int
    begun_at: datetime
    checked_at: datetime


@dataclass(frozen=True, slots=True)
class MoveRate:
    """Dead letters a second, and how long `remaining` dead letters take at that; None: not known."""

    per_second: float
    left: timedelta | None


def move_rate(latest: Sequence[Moved], remaining: int, now: datetime, most: float = 0) -> MoveRate | None:
    """Returns None while nothing was moved, or no longer. Slices that wait between each other (a limit, a
    ladder) count with their waiting: the time that is left has it too. `most` a second is what the job may
    do, 0: anything; the first slices alone would look faster."""
    if not latest:
        return None
    first = min(each.begun_at for each in latest)
    last = max(each.checked_at for each in latest)
    if now - last > STALE:
        return None
    seconds = max((last - first).total_seconds(), 0.001)
    per_second = sum(each.size for each in latest) / seconds
    per_second = min(per_second, most) if most else per_second
    left = timedelta(seconds=remaining / per_second) if per_second > 0 and remaining else None
    return MoveRate(per_second, left)
