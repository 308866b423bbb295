"""The instants at which a schedule is due, and what becomes of these windows. Pure; every instant that is
answered is UTC.

Daylight saving, as Debian's cron has it. A crontab with fixed minutes and hours means the wall clock: a
time that is left out comes at the end of the gap (02:30 → 03:00, once, also when several times fall into
it), one that occurs twice comes the first time only. A crontab whose minutes or hours begin with * means
elapsed time: nothing in the gap, and in the repeated hour it comes twice as often. An interval is counted
from 1970-01-01 00:00 UTC: late starts and restarts do not move it.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from zoneinfo import ZoneInfo

from cronsim import CronSim

from agents.models import Missed
from agents.reasons import LATER_ONE_STARTED, MISSED, MISSED_MANY, STARTED_LATE
from console.reasons import NO_REASON, Reason

# Looking for the newest window: each look is bounded, because the one before it found nothing.
LOOKS_BACK = (timedelta(hours=1), timedelta(days=1), timedelta(days=32), timedelta(days=366))


@dataclass(frozen=True, slots=True)
class Timetable:
    """Exactly one of `crontab` (valid, five fields, read in `time_zone`) and `every_seconds`."""

    crontab: str = ""
    time_zone: str = "UTC"
    every_seconds: int | None = None

    def after(self, instant: datetime) -> Iterator[datetime]:
        """Every due instant later than that one, in order, each once. Ends after 50 years without any."""
        if self.every_seconds is not None:
            return _multiples(self.every_seconds, instant)
        return _of_crontab(self.crontab, ZoneInfo(self.time_zone), instant)


def due_windows(timetable: Timetable, after: datetime, until: datetime, most: int) -> list[datetime]:
    """The first `most` due instants in (after, until]."""
    found: list[datetime] = []
    for due in islice(timetable.after(after), most):
        if due > until:
            break
        found.append(due)
    return found


def last_window(timetable: Timetable, after: datetime, until: datetime) -> datetime | None:
    """The newest due instant in (after, until]."""
    if timetable.every_seconds is not None:
        newest = _multiple(math.floor(until.timestamp()) // timetable.every_seconds, timetable.every_seconds)
        return newest if newest > after else None
    for span in LOOKS_BACK:
        if until - span <= after:
            break
        if newest_here := _newest(timetable, until - span, until):
            return newest_here
    return _newest(timetable, after, until)


def next_windows(timetable: Timetable, now: datetime, count: int) -> list[datetime]:
    return list(islice(timetable.after(now), count))


def _newest(timetable: Timetable, after: datetime, until: datetime) -> datetime | None:
    newest = None
    for due in timetable.after(after):
        if due > until:
            break
        newest = due
    return newest


def _multiples(seconds: int, after: datetime) -> Iterator[datetime]:
    number = math.floor(after.timestamp()) // seconds
    while True:
        number += 1
        yield _multiple(number, seconds)


def _multiple(number: int, seconds: int) -> datetime:
    return datetime.fromtimestamp(number * seconds, UTC)


def _of_crontab(crontab: str, zone: ZoneInfo, after: datetime) -> Iterator[datetime]:
    # Several wall clock times of one gap are moved to the same instant; and from within a repeated hour on,
    # the first of two is in the past.
    last = after
    for local in CronSim(crontab, after.astimezone(zone)):
        due = local.astimezone(UTC)
        if due > last:
            last = due
            yield due


# -- which due windows are started, and which are skipped and why --------------------------------------------
# What was due in the last minutes is on time: of several the newest starts. What is older was missed: it is
# skipped, or all of it together runs once.


# A restart of the MA does not miss the window of the day.
ON_TIME = timedelta(minutes=5)
# More than so many missed windows become one row that says how many; past COUNTED it says so.
ROWS = 20
COUNTED = 1000


@dataclass(frozen=True, slots=True)
class Skip:
    due_at: datetime
    reason: Reason


@dataclass(frozen=True, slots=True)
class Verdict:
    """`start`: the window to start, if any; `remark` is stored with it."""

    start: datetime | None = None
    remark: Reason = NO_REASON
    skips: tuple[Skip, ...] = ()


def decide_windows(timetable: Timetable, decided_up_to: datetime, now: datetime, missed: str) -> Verdict:
    """Returns what becomes of every window in (decided_up_to, now]."""
    on_time_from = max(decided_up_to, now - ON_TIME)
    recent = due_windows(timetable, on_time_from, now, COUNTED)
    old = _Missed(timetable, decided_up_to, on_time_from)
    if recent:
        skips = [Skip(due, LATER_ONE_STARTED()) for due in recent[:-1]]
        return Verdict(recent[-1], NO_REASON, (*old.skips(), *skips))
    if missed == Missed.ONCE and old.newest is not None:
        return Verdict(old.newest, STARTED_LATE(), old.skips(but=old.newest))
    return Verdict(None, NO_REASON, old.skips())


class _Missed:
    """The windows in (after, until], however many."""

    def __init__(self, timetable: Timetable, after: datetime, until: datetime) -> None:
        self.first = due_windows(timetable, after, until, COUNTED + 1) if after < until else []
        overflow = len(self.first) > COUNTED
        self.count = f"{COUNTED}+" if overflow else str(len(self.first))
        self.newest = (
            last_window(timetable, after, until) if overflow else self.first[-1] if self.first else None
        )

    def skips(self, but: datetime | None = None) -> tuple[Skip, ...]:
        """`but`: the one that is started after all."""
        if len(self.first) <= ROWS:
            return tuple(Skip(due, MISSED()) for due in self.first if due != but)
        # The row stands at the first one, so that it never takes the place of the newest, which may be
        # started.
        reason = MISSED_MANY(count=self.count, first=_stamp(self.first[0]), last=_stamp(self.newest))
        return (Skip(self.first[0], reason),)


def _stamp(instant: datetime | None) -> str:
    return f"{instant:%Y-%m-%d %H:%M} UTC" if instant else ""
