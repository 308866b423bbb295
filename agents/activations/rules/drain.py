"""Decides when an activation that drains its subscription is done. Pure: what the broker says now, what was
seen before.

Drained: everything that was in the subscription at the start is handled or dead, for the idle time. Delayed
messages and those in delivery are in it. Messages that come later are taken within the limits: a setting that
has one goes on until nothing came for the idle time, or the limit is reached; one without does not wait for
them, so that it ends under a steady stream too.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from agents.models import Ending


@dataclass(frozen=True, slots=True)
class QueueReading:
    """Holds what the broker counts in a subscription. `total` contains `delayed` (waiting for their
    redelivery) and `in_delivery`; `added` counts every message that ever came, redeliveries aside. `later`:
    so many of these came after the start; None where that is not known, or where they are to be taken too."""

    total: int
    delayed: int
    in_delivery: int
    added: int
    later: int | None = None

    @property
    def gone(self) -> bool:
        """Nothing of the start is left. As many as came later may be left; a delayed one may be of the
        start."""
        return self.total == 0 or (self.later is not None and self.delayed == 0 and self.total <= self.later)

    @property
    def only_delayed(self) -> bool:
        if self.later is not None and self.later > 0:
            return self.delayed > 0 and self.total - self.delayed <= self.later
        return self.total > 0 and self.delayed >= self.total and self.in_delivery == 0


@dataclass(frozen=True, slots=True)
class DrainProgress:
    """`idle_since`: seen with nothing of the start, and nothing came since that is waited for.
    `delayed_since`: nothing was left but delayed messages, and nothing came since. `added`: as it was seen
    last; None before the first look."""

    idle_since: datetime | None = None
    delayed_since: datetime | None = None
    added: int | None = None


@dataclass(frozen=True, slots=True)
class Patience:
    """`idle`: so long empty. `wait`: so long for delayed messages, all of them together. `longest`: zero = no
    limit. `later`: messages that come after the start are taken too, until a limit."""

    idle: timedelta
    wait: timedelta
    longest: timedelta = timedelta()
    later: bool = False


def advance_drain(reading: QueueReading, before: DrainProgress, now: datetime) -> DrainProgress:
    """Returns what is known after this look. A message that came and was handled between two looks also
    starts the idle time anew; a delayed one that is tried again meanwhile and fails does not start the
    waiting anew."""
    came = reading.added != before.added and reading.later is None
    known = DrainProgress() if came else before
    idle_since = (known.idle_since or now) if reading.gone else None
    delayed_since = known.delayed_since or (now if reading.only_delayed else None)
    return DrainProgress(idle_since, None if reading.gone else delayed_since, reading.added)


def verdict(
    reading: QueueReading, progress: DrainProgress, patience: Patience, now: datetime
) -> Ending | None:
    """Returns whether it is done by what was seen. A delayed message that is tried again now may succeed."""
    if progress.idle_since is not None and now - progress.idle_since >= patience.idle:
        return Ending.DRAINED
    if (
        reading.only_delayed
        and progress.delayed_since is not None
        and now - progress.delayed_since >= patience.wait
    ):
        return Ending.WAITED
    return None


def time_is_up(started_at: datetime, longest: timedelta, now: datetime) -> bool:
    return bool(longest) and now - started_at >= longest
