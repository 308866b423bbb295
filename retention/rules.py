"""Decides what of one setting's protocols goes: ranges of activations with a bound in time, never ids. Pure.

The last *finished* activation decides; one that has not ended is none. It finished well: what belongs to
ended activations up to it goes. With an error: of that, what is older than N before its start. Where none
finished for C, what is older than C goes, whichever activation it belongs to, also one that never ends. Both
may hold at once.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum

# The place of an activation among those of its setting. Rows of old houses share number 0: their start tells.
Place = tuple[int, datetime]


class Rule(Enum):
    WELL = "well"
    ERROR = "error"
    SILENT = "silent"


@dataclass(frozen=True, slots=True)
class ActivationFact:
    """`well`: None where nobody can tell, which counts as with an error."""

    number: int
    started_at: datetime
    ended_at: datetime | None
    well: bool | None = None

    @property
    def place(self) -> Place:
        return self.number, self.started_at


@dataclass(frozen=True, slots=True)
class Range:
    """`up_to`: of ended activations up to that place, known to the MA; None: of whichever, also of those that
    go on and of those that the MA does not know. `before`: only what is older; None: however old."""

    rule: Rule
    up_to: Place | None
    before: datetime | None

    def covers(self, activation: ActivationFact | None, at: datetime) -> bool:
        """Returns whether a protocol of that instant goes; `activation`: None where the MA does not know
        it."""
        if self.up_to is not None and not _ended_up_to(self.up_to, activation):
            return False
        return self.before is None or at < self.before


def _ended_up_to(place: Place, activation: ActivationFact | None) -> bool:
    return activation is not None and activation.ended_at is not None and activation.place <= place


def last_finished(activations: Iterable[ActivationFact]) -> ActivationFact | None:
    """The one that was started last of those that have ended."""
    return max(
        (each for each in activations if each.ended_at is not None), key=lambda each: each.place, default=None
    )


def what_goes(
    activations: Iterable[ActivationFact], *, now: datetime, n: timedelta, c: timedelta | None
) -> tuple[Range, ...]:
    """Decides what goes of one setting. `n`: so long before the start of one with an error is kept. `c`: None
    switches that sentence off. Of `activations` only the last finished one matters, and the one that ended
    last."""
    facts = list(activations)
    last, ends = last_finished(facts), [each.ended_at for each in facts if each.ended_at is not None]
    found = []
    if last is not None and last.well:
        found.append(Range(Rule.WELL, last.place, None))
    elif last is not None:
        found.append(Range(Rule.ERROR, last.place, last.started_at - n))
    if c is not None and (not ends or max(ends) < now - c):
        found.append(Range(Rule.SILENT, None, now - c))
    return tuple(found)


def none_finished(ranges: Iterable[Range]) -> bool:
    """Returns whether these are what goes of a setting of which no activation has finished: its age alone
    decides."""
    return {each.rule for each in ranges} <= {Rule.SILENT}


def nobodys(*, now: datetime, c: timedelta | None) -> tuple[Range, ...]:
    """Decides what goes of activations that the MA does not know, and of settings that are gone: nobody can
    say how they finished."""
    return what_goes((), now=now, n=timedelta(), c=c)
