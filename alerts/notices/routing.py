"""Decides what a recipient gets and when: by severity, and by hours on days of the week in a time zone."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from enum import Enum

# A window opens again within a week; one more day where clocks change.
MOST_DAYS = 8


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
        windows = [self._window(today + timedelta(days=days)) for days in range(-1, MOST_DAYS + 1)]
        for start, stop in (window for window in windows if window is not None):
            if now < stop and start < stop:
                return max(now, start)
        return now

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

    SEND = "send"
    HOLD = "hold"
    SKIP = "skip"


@dataclass(frozen=True, slots=True)
class Waiting:
    """A notification that is due. `reminds`: it repeats what was told. `over`: it resolves, and `told`: what
    it resolves was sent to this recipient. `incident`: the channel keeps it open. `held`: it waited for the
    hours before; `cause_over`: its cause is over by now."""

    reminds: bool = False
    over: bool = False
    told: bool = False
    incident: bool = False
    held: bool = False
    cause_over: bool = False


def turn_of(waiting: Waiting, *, within_hours: bool) -> Turn:
    """Outside the hours: a reminder is not needed, an incident that is open is resolved, the rest is held.
    When they begin: what is over by then is nobody's business any more."""
    if not within_hours:
        if waiting.reminds:
            return Turn.SKIP
        return Turn.SEND if waiting.over and waiting.told and waiting.incident else Turn.HOLD
    if waiting.held and (waiting.cause_over if not waiting.over else not waiting.told):
        return Turn.SKIP
    return Turn.SEND
