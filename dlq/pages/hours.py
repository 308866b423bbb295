"""How many letters died in each of the last hours, for a sparkline: bounded reads of one index, however many
died.

An hour that is over does not change any more, so it is counted once per process and kept.
"""

import threading
from collections.abc import Sequence
from datetime import datetime, timedelta

from dlq.tallies import Tally, tallies

HOURS = 24
HOUR = timedelta(hours=1)
# Of one hour no more are counted: the line has its full height there.
MOST = 2000
# Closed hours of so many queues are kept; then all are forgotten.
MOST_KEPT = 20_000

_lock = threading.Lock()
_kept: dict[tuple[str, datetime], int] = {}


def deaths_by_hour(queues: Sequence[str], now: datetime) -> dict[str, list[int]]:
    """By queue: the last HOURS hours of the clock, oldest first, the one at hand last; each at most MOST."""
    this = now.replace(minute=0, second=0, microsecond=0)
    hours = [this - HOUR * back for back in range(HOURS - 1, -1, -1)]
    every = [(queue, hour) for queue in queues for hour in hours]
    with _lock:
        counts = {each: _kept[each] for each in every if each[1] != this and each in _kept}
    missing = [each for each in every if each not in counts]
    asked = [Tally(queue, hour, hour + HOUR, ever=True) for queue, hour in missing]
    counts |= dict(zip(missing, tallies(asked, MOST), strict=True))
    with _lock:
        if len(_kept) > MOST_KEPT:
            _kept.clear()
        _kept.update({each: counts[each] for each in missing if each[1] != this})
    return {queue: [counts[queue, hour] for hour in hours] for queue in queues}


def forget() -> None:
    """For tests: as in a process that has just started."""
    with _lock:
        _kept.clear()
