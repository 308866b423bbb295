"""Which due windows are started, and which are skipped and why. Pure.

What was due in the last minutes is on time: of several the newest starts. What is older was missed: it is
skipped, or all of it together runs once.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from agents.models import Missed
from agents.reasons import LATER_ONE_STARTED, MISSED, MISSED_MANY, STARTED_LATE
from agents.timetable import Timetable, due_windows, last_window
from console.reasons import NO_REASON, Reason

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
