"""The groups of what is dead, the largest first, in bounded time.

Each group of a queue is a range of an index: a loose scan finds the groups, and each is counted up to COARSE, the large
ones exactly up to COUNTED as long as BUDGET lasts. What is larger is estimated from windows spread over its numbers.
Where there are more than MOST groups, those are shown whose letters are among the latest.
"""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from agents.pages import lists
from agents.pages.amounts import number
from dlq import loose
from dlq.finding.quick import quick
from dlq.groups import days
from dlq.groups.about import about, rounded
from dlq.groups.kinds import Kind
from dlq.loose import Counted
from dlq.models import DeadLetter, LetterState

DEAD = LetterState.DEAD.value
# Groups that are counted, of all queues together.
MOST = 600
COARSE = 1_000
BUDGET = 0.1  # seconds
# Where there are too many groups: so many of the latest letters say which ones are shown.
LATEST = 2_000
LARGEST_OF_LATEST = 100


@dataclass(frozen=True, slots=True)
class Part:
    """A group within one queue. `about`: the count is an estimate. `first` and `last`: numbers of letters."""

    queue: str
    count: int
    first: int
    last: int
    about: bool = False

    @property
    def words(self) -> str:
        return about(self.count) if self.about else number(self.count)


@dataclass(frozen=True, slots=True)
class Group:
    """`value` empty: letters of which no protocol is known. The largest part first."""

    kind: Kind
    value: Any
    parts: tuple[Part, ...]

    @property
    def count(self) -> int:
        return sum(part.count for part in self.parts)

    @property
    def about(self) -> bool:
        return any(part.about for part in self.parts)

    @property
    def words(self) -> str:
        """How many, for people."""
        return about(self.count) if self.about else number(self.count)

    @property
    def first(self) -> int:
        return min(part.first for part in self.parts)

    @property
    def last(self) -> int:
        return max(part.last for part in self.parts)

    @property
    def query(self) -> str:
        return self.kind.query(self.value)


@dataclass(frozen=True, slots=True)
class Groups:
    """`more`: there are other groups, smaller or older ones."""

    found: list[Group]
    more: bool = False


def groups_of(kind: Kind, queues: Sequence[str]) -> Groups:
    """Of the dead letters in these queues."""
    with quick():
        if not kind.column:
            found, more = days.by_day(queues)
            parts = [(day, _of_day(each)) for day, each in found]
            return Groups(_merged(kind, parts, key=lambda group: group.value), more)
        counted, more = _counted(kind, queues)
        return Groups(_merged(kind, _sized(kind, counted), key=lambda group: group.count), more)


def _counted(kind: Kind, queues: Sequence[str]) -> tuple[list[Counted], bool]:
    found = loose.counted(queues, DEAD, kind.column, most=MOST + 1, up_to=COARSE)
    if len(found) <= MOST:
        return found, False
    values = _among_latest(queues, kind.column)
    return loose.counted_values(queues, DEAD, kind.column, values, up_to=COARSE), True


def _among_latest(queues: Sequence[str], column: str) -> list[Any]:
    """The most frequent values of the latest letters."""
    each = max(20, LATEST // len(queues))
    counts: dict[Any, int] = {}
    for queue in queues:
        rows = DeadLetter.objects.filter(queue=queue, state=DEAD).order_by("-pk")
        for value in rows.values_list(column, flat=True)[:each]:
            if value is not None:
                counts[value] = counts.get(value, 0) + 1
    return sorted(counts, key=lambda value: -counts[value])[:LARGEST_OF_LATEST]


def _sized(kind: Kind, counted: Iterable[Counted]) -> list[tuple[Any, Part]]:
    """Those that were counted to the end, and the others as exactly as there is time for."""
    ends, found = time.monotonic() + BUDGET, []
    for each in counted:
        part = _exact(each)
        if each.count >= COARSE:
            part = _sized_one(kind, each, part, in_time=time.monotonic() < ends)
        found.append((kind.value(each.value), part))
    return found


def _sized_one(kind: Kind, each: Counted, part: Part, *, in_time: bool) -> Part:
    rows = DeadLetter.objects.filter(queue=each.queue, state=DEAD, **{kind.column: each.value}).order_by()
    if in_time:
        count = rows[: lists.COUNTED + 1].count()
        if count <= lists.COUNTED:
            return replace(part, count=count)
    estimate = rounded(each.queue, DEAD, each.first, each.last, column=kind.column, value=each.value)
    least = lists.COUNTED if in_time else COARSE
    return replace(part, count=max(estimate, least), about=True)


def _exact(each: Counted) -> Part:
    return Part(each.queue, each.count, each.first, each.last)


def _of_day(each: Counted) -> Part:
    """Numbers grow with time: between the first and the last one of a day lie hardly any others."""
    if each.count <= lists.COUNTED:
        return _exact(each)
    first, last = sorted((each.first, each.last))
    estimate = rounded(each.queue, DEAD, first, last)
    return Part(each.queue, max(estimate, lists.COUNTED), each.first, each.last, about=True)


def _merged(kind: Kind, parts: Iterable[tuple[Any | date, Part]], key: Any) -> list[Group]:
    """One group per value, over all queues."""
    of: dict[Any, list[Part]] = {}
    for value, part in parts:
        of.setdefault(value, []).append(part)
    groups = [Group(kind, value, tuple(sorted(some, key=lambda part: -part.count))) for value, some in of.items()]
    return sorted(groups, key=key, reverse=True)
