"""Which due windows are started, held or skipped, and why. Pure.

What was due in the last minutes is on time: of several the newest starts. What is older was missed: it is
skipped, or all of it together runs once. What is due while something is frozen is held: by the same rule it
is left out, or all of it together runs once after the freeze.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from agents.models import Missed
from agents.reasons import (
    HELD_MANY,
    LATER_ONE_STARTED,
    MISSED,
    MISSED_MANY,
    STARTED_AFTER_FREEZE,
    STARTED_LATE,
)
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
    """`start`: the window to start, if any; `remark` is stored with it. `holds`: what a freeze holds, and
    `owed`: the newest of these where it runs once afterwards."""

    start: datetime | None = None
    remark: Reason = NO_REASON
    skips: tuple[Skip, ...] = ()
    holds: tuple[Skip, ...] = ()
    owed: datetime | None = None

    @property
    def is_any(self) -> bool:
        """Returns whether there is anything to write down."""
        return self.start is not None or bool(self.skips or self.holds)


@dataclass(frozen=True, slots=True)
class Holding:
    """`frozen`: why nothing starts now. `owed`: the newest window that was held before."""

    frozen: Reason = NO_REASON
    owed: datetime | None = None


NOT_HELD = Holding()


def decide_windows(
    timetable: Timetable, decided_up_to: datetime, now: datetime, missed: str, holding: Holding = NOT_HELD
) -> Verdict:
    """Returns what becomes of every window in (decided_up_to, now]. While something is frozen all are held.
    Where missed ones run once, what is owed starts after the freeze, unless a newer one does."""
    owed = holding.owed if missed == Missed.ONCE else None
    if holding.frozen:
        held = _Missed(timetable, decided_up_to, now)
        newest = held.newest if missed == Missed.ONCE else None
        return Verdict(holds=held.holds(holding.frozen), owed=newest or owed)
    on_time_from = max(decided_up_to, now - ON_TIME)
    recent = due_windows(timetable, on_time_from, now, COUNTED)
    old = _Missed(timetable, decided_up_to, on_time_from)
    if recent:
        skips = [Skip(due, LATER_ONE_STARTED()) for due in recent[:-1]]
        return Verdict(recent[-1], NO_REASON, (*old.skips(), *skips))
    if missed == Missed.ONCE and old.newest is not None:
        return Verdict(old.newest, STARTED_LATE(), old.skips(but=old.newest))
    if owed is not None:
        return Verdict(owed, STARTED_AFTER_FREEZE())
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

    def holds(self, why: Reason) -> tuple[Skip, ...]:
        """The same while something is frozen: the newest has a row of its own, from which it starts later."""
        if len(self.first) <= ROWS or self.newest is None:
            return tuple(Skip(due, why) for due in self.first)
        first, last = _stamp(self.first[0]), _stamp(self.newest)
        many = HELD_MANY(count=self.count, first=first, last=last, why=why)
        return Skip(self.first[0], many), Skip(self.newest, why)


def _stamp(instant: datetime | None) -> str:
    return f"{instant:%Y-%m-%d %H:%M} UTC" if instant else ""
