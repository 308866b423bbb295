"""The instants at which a schedule or a maintenance window is due. Pure; every instant that is answered is
UTC.

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

# Looking for the newest window: each look is bounded, because the one before it found nothing.
LOOKS_BACK = (timedelta(hours=1), timedelta(days=1), timedelta(days=32), timedelta(days=366))


# A week has every combination of day and time that most crontabs mean.
GAP_WITHIN = timedelta(days=8)


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


def leaves_a_gap(timetable: Timetable, length: timedelta, now: datetime) -> bool:
    """Returns whether windows of that length are ever all closed, within GAP_WITHIN of the next one."""
    before: datetime | None = None
    for due in timetable.after(now):
        if before is None:
            first = due
        elif due - before > length:
            return True
        if due - first > GAP_WITHIN:
            return False
        before = due
    return True


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
