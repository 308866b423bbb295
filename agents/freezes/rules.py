"""Decides what stands in the way of new starts at an instant. Pure: nobody has to end anything, an end that
is past is over for whoever asks."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from agents.reasons import FROZEN, FROZEN_POOL, MAINTENANCE, MAINTENANCE_POOL
from agents.timetable import Timetable, last_window, next_windows
from console.reasons import Reason


@dataclass(frozen=True, slots=True)
class Frozen:
    """What holds new starts now: a freeze, or an open maintenance window; by the id of either. `pool` None:
    the whole installation. `until` None: until somebody ends it."""

    pool: int | None
    pool_name: str
    by: str
    why: str
    since: datetime
    until: datetime | None
    freeze: int | None = None
    maintenance: int | None = None

    @property
    def reason(self) -> Reason:
        if self.maintenance is not None:
            return (
                MAINTENANCE_POOL(pool=self.pool_name, why=self.why)
                if self.pool
                else MAINTENANCE(why=self.why)
            )
        if self.pool:
            return FROZEN_POOL(pool=self.pool_name, by=self.by, why=self.why)
        return FROZEN(by=self.by, why=self.why)


def stands(lifted_at: datetime | None, ends_at: datetime | None, now: datetime) -> bool:
    """Returns whether a freeze holds new starts. Its end itself is free."""
    return lifted_at is None and (ends_at is None or now < ends_at)


def open_window(
    timetable: Timetable, length: timedelta, lifted_at: datetime | None, now: datetime
) -> tuple[datetime, datetime] | None:
    """Returns begin and end of the maintenance window that is open now, or None. It begins by the clock of
    its time zone and lasts so much elapsed time. Of several that overlap the newest ends last."""
    begun = last_window(timetable, now - length, now)
    if begun is None or (lifted_at is not None and begun <= lifted_at):
        return None
    return begun, begun + length


def next_window(timetable: Timetable, now: datetime) -> datetime | None:
    """Returns when the next one begins; None where none does in 50 years."""
    return next(iter(next_windows(timetable, now, 1)), None)


def longest(found: Iterable[Frozen]) -> Frozen | None:
    """Returns the one that ends last, or None; of equal ones that of the whole installation."""

    def place(frozen: Frozen) -> tuple[float, bool]:
        return frozen.until.timestamp() if frozen.until else math.inf, frozen.pool is None

    return max(found, key=place, default=None)
