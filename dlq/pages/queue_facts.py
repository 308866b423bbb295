"""What our rows know of the letters that lie in dead-letter queues: how many, since when, mostly of what."""

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from console.lists.keyset import COUNTED
from dlq.dead_letters.queries.tallies import Tally, ends, kinds, tallies
from dlq.models import DeadLetter

# Of more queues than FEW each is counted less far.
FEW, COUNTED_OF_MANY = 20, 1_000
# What "most of them" is judged by: the latest letters, not the whole queue.
LATEST = 500
# A later report may tell of what a letter died, so what was judged holds for so long, in seconds.
HOLDS = 30.0
MOST_KEPT = 5000


@dataclass(frozen=True, slots=True)
class Facts:
    """`count` goes up to `bound` + 1. `top` is what most of the latest died of, `top_share` in per cent of
    them."""

    count: int = 0
    bound: int = COUNTED
    since: datetime | None = None
    latest: datetime | None = None
    top: str = ""
    top_fingerprint: str = ""
    top_share: int = 0


@dataclass(frozen=True, slots=True)
class _Judged:
    """Of a queue with this newest letter and so many."""

    of: tuple[int, int]
    at: float
    top: str
    fingerprint: str
    share: int


_lock = threading.Lock()
_judged: dict[str, _Judged] = {}


def facts_of(queues: Sequence[str]) -> dict[str, Facts]:
    """By queue; some statements for all of them."""
    edges = ends(queues)
    holding = list(edges)
    bound = COUNTED if len(holding) <= FEW else COUNTED_OF_MANY
    counts = dict(zip(holding, tallies([Tally(queue) for queue in holding], bound + 1), strict=True))
    numbers = {number for edge in edges.values() for number in edge}
    seen = dict(DeadLetter.objects.filter(pk__in=numbers).order_by().values_list("pk", "seen_at"))
    tops = _tops({queue: (newest, counts[queue]) for queue, (_oldest, newest) in edges.items()})
    found = {queue: Facts() for queue in queues}
    for queue, (oldest, newest) in edges.items():
        top, since, latest = tops[queue], seen.get(oldest), seen.get(newest)
        found[queue] = Facts(counts[queue], bound, since, latest, top.top, top.fingerprint, top.share)
    return found


def _tops(of: dict[str, tuple[int, int]]) -> dict[str, _Judged]:
    now = time.monotonic()
    with _lock:
        known = {queue: _judged[queue] for queue in of if queue in _judged}
    known = {queue: each for queue, each in known.items() if each.of == of[queue] and now - each.at < HOLDS}
    missing = [queue for queue in of if queue not in known]
    asked = kinds(missing, LATEST) if missing else {}
    for queue in missing:
        kind, fingerprint, most, judged = asked.get(queue, ("", "", 0, 0))
        known[queue] = _Judged(of[queue], now, kind, fingerprint, round(100 * most / judged) if judged else 0)
    with _lock:
        if len(_judged) > MOST_KEPT:
            _judged.clear()
        _judged.update({queue: known[queue] for queue in missing})
    return known


def forget() -> None:
    """For tests: as in a process that has just started."""
    with _lock:
        _judged.clear()


# How many letters died in each of the last hours, for a sparkline: bounded reads of one index, however many
# died.
#
# An hour that is over does not change any more, so it is counted once per process and kept.


HOURS = 24
HOUR = timedelta(hours=1)
# Of one hour no more are counted: the line has its full height there.
MOST = 2000
# Closed hours of so many queues are kept; then all are forgotten.
MOST_HOURS_KEPT = 20_000

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
        if len(_kept) > MOST_HOURS_KEPT:
            _kept.clear()
        _kept.update({each: counts[each] for each in missing if each[1] != this})
    return {queue: [counts[queue, hour] for hour in hours] for queue in queues}


def forget_hours() -> None:
    """For tests: as in a process that has just started."""
    with _lock:
        _kept.clear()
