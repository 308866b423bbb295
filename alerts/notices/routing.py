"""Decides what a recipient gets and when: by severity, and by hours on days of the week in a time zone."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from enum import Enum, auto

# A window opens again within a week, or within two where the clock skips it. One of yesterday may last.
DAYS = range(-1, 15)


@dataclass(frozen=True, slots=True)
class Hours:
    """`weekdays`: ISO numbers, empty for each day. Without times all day. A window over midnight belongs to
    the day on which it begins."""

    weekdays: frozenset[int] = frozenset()
    begin: time | None = None
    end: time | None = None
    zone: tzinfo = UTC

    def opens_at(self, now: datetime) -> datetime:
        """Returns `now` within the hours, else the instant at which the next ones begin."""
        today = now.astimezone(self.zone).date()
        windows = [window for days in DAYS if (window := self._window(today + timedelta(days=days)))]
        return next(max(now, start) for start, stop in windows if now < stop and start < stop)

    def _window(self, day: date) -> tuple[datetime, datetime] | None:
        """Returns the window that begins on this day; None where none does."""
        if self.weekdays and day.isoweekday() not in self.weekdays:
            return None
        begin, end = self.begin or time(), self.end or time()
        last = day if begin < end else day + timedelta(days=1)
        return self._at(day, begin), self._at(last, end)

    def _at(self, day: date, clock: time) -> datetime:
        return datetime.combine(day, clock, self.zone).astimezone(UTC)


class Turn(Enum):
    """What is done with a notification whose time has come."""

    SEND = auto()
    HOLD = auto()
    SKIP = auto()


@dataclass(frozen=True, slots=True)
class Waiting:
    """A notification that is due. `reminds`: it repeats what was told. `over`: it resolves, and what it
    resolves was sent to this recipient (`told`), or never tried (`unheard`). `incident`: the channel keeps it
    open. `held`: it waited for the hours before; `cause_over`: its cause is over for good by now."""

    reminds: bool = False
    over: bool = False
    told: bool = False
    unheard: bool = False
    incident: bool = False
    held: bool = False
    cause_over: bool = False


def turn_of(waiting: Waiting, *, within_hours: bool) -> Turn:
    """Outside the hours: a reminder is not needed, an incident that is open is resolved, the rest is held.
    When they begin: what is over by then is nobody's business any more, nor is its end. An incident that is
    triggered after it was resolved would stay open."""
    if waiting.over and waiting.unheard:
        return Turn.SKIP
    if within_hours:
        may_be_late = (waiting.held or waiting.incident) and not waiting.over
        return Turn.SKIP if may_be_late and waiting.cause_over else Turn.SEND
    if waiting.reminds:
        return Turn.SKIP
    return Turn.SEND if waiting.over and waiting.told and waiting.incident else Turn.HOLD
