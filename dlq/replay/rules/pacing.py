"""Decides when the next slice of a job may move: its rate and its run window. Pure; `now` is passed in."""

from dataclasses import dataclass
from datetime import datetime, time, timedelta, tzinfo

# A day with a change of the clocks has up to 25 hours; the search for an opening looks a little further.
_MINUTES_AHEAD = 27 * 60


@dataclass(frozen=True, slots=True)
class Window:
    """Local times of day in `zone`: from (inclusive) until (exclusive). It may span midnight."""

    opens: time
    closes: time
    zone: tzinfo

    def holds(self, now: datetime) -> bool:
        at = now.astimezone(self.zone).time()
        if self.opens <= self.closes:
            return self.opens <= at < self.closes
        return at >= self.opens or at < self.closes


def window_allows(now: datetime, window: Window | None) -> datetime:
    """`now` inside of the window, else when it opens next.

    It looks minute by minute: where the clocks are put forward an opening that does not exist is the end of
    the gap, where they are put back the window is open each time that its local times come."""
    if window is None or window.holds(now):
        return now
    minute = now.replace(second=0, microsecond=0)
    for ahead in range(1, _MINUTES_AHEAD):
        at = minute + timedelta(minutes=ahead)
        if window.holds(at):
            return at
    return minute + timedelta(minutes=_MINUTES_AHEAD)  # a window inside of a gap: it opens another day


def rate_allows(now: datetime, last_at: datetime | None, last_size: int, per_second: float) -> datetime:
    """Returns when the slice after one of `last_size` dead letters at `last_at` may move. What was missed is
    not made up for: a job that waited does not burst afterwards."""
    if not per_second or last_at is None:
        return now
    return max(now, last_at + timedelta(seconds=last_size / per_second))


def largest_slice(per_second: float, largest: int) -> int:
    """Returns the size; no slice of a slow job holds more than a second's dead letters."""
    return max(1, min(largest, int(per_second))) if per_second else largest
