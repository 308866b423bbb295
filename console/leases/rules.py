"""What a process may do with a lease at a moment. `now` is in seconds of the machine's own clock since its
boot, which no one sets and which also counts while the machine sleeps."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from uuid import UUID

# A lease runs so long from each renewal.
LEASE = timedelta(seconds=15)
# So much earlier its holder stops by itself: what it has begun ends, and clocks run at different speeds.
MARGIN_SECONDS = 3.0
RENEW_SECONDS = 4.0
ASK_SECONDS = 1.0
# A holder that has got nothing done for so long leaves the lease to one that waits.
IDLE_SECONDS = 60.0
# … and lets it try for so long.
LEFT_SECONDS = 2 * LEASE.total_seconds()
# By the clock of the database a lease that ended so long ago is nobody's, also for one that has just begun to
# look: so far apart the clocks of two databases are not.
LONG_OVER = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Held:
    """`asked_at` is taken before the database is asked: whatever the answer took, the row ends later than
    `sure_until` says."""

    holder: UUID
    asked_at: float
    worked_at: float

    @property
    def sure_until(self) -> float:
        return self.asked_at + LEASE.total_seconds() - MARGIN_SECONDS


@dataclass(frozen=True, slots=True)
class Watched:
    """What one who waits has seen: this holder with this end, `since` when by its own clock."""

    holder: UUID | None
    until: datetime
    since: float


def may_act(held: Held | None, now: float) -> bool:
    return held is not None and now < held.sure_until


def is_due(held: Held, now: float) -> bool:
    """Returns whether it is time to renew."""
    return now >= held.asked_at + RENEW_SECONDS


def is_idle(held: Held, now: float) -> bool:
    return now >= held.worked_at + IDLE_SECONDS


def watch(before: Watched | None, holder: UUID | None, until: datetime, now: float) -> Watched:
    """A holder that renewed meanwhile is watched anew."""
    if before is not None and (before.holder, before.until) == (holder, until):
        return before
    return Watched(holder, until, now)


def may_take(seen: Watched, now: float, *, over_for: timedelta, gone: bool) -> bool:
    """`over_for`: how long the lease has been over by the clock of the database. `gone`: its holder was a
    process of this machine, and has ended. Else the row must have stood still for a whole lease by our own
    clock: so the clocks of hosts and databases may differ as they like."""
    if seen.holder is None or gone or over_for >= LONG_OVER:
        return True
    return now - seen.since >= LEASE.total_seconds()


def renewed(held: Held, asked_at: float) -> Held:
    return replace(held, asked_at=asked_at)


def worked(held: Held, now: float) -> Held:
    return replace(held, worked_at=now)
