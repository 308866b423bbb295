"""The groups of what is dead, the largest first, in bounded time.

Each group of a queue is a range of an index: a loose scan finds the groups, and each is counted up to COARSE.
The large ones are estimated from windows spread over their numbers, and those that may be no larger than
COUNTED are counted exactly, the smallest first, until EXACT letters are read. Where there are more than MOST
groups, those are shown whose letters are among the latest. It is a few statements, however many groups there
are, and tells the same under any load.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from console.database import quick
from console.lists import keyset
from console.ui.amounts import number
from dlq import loose
from dlq.groups import days
from dlq.groups.about import Range, about, rounded
from dlq.groups.kinds import Kind
from dlq.loose import Counted

# Groups that are counted, of all queues together, each part in a queue by itself.
MOST = 5_000
COARSE = 400
EXACT = 100_000
# An estimate that is larger by less may be of no more than keyset.COUNTED.
DOUBT = 1.2
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
    if not queues:
        return Groups([])
    with quick():
        if not kind.column:
            counted, more = days.by_day(queues, up_to=COARSE)
            return Groups(_merged(kind, _sized(kind, counted), key=lambda group: group.value), more)
        counted, more = _counted(kind, queues)
        return Groups(_merged(kind, _sized(kind, counted), key=lambda group: group.count), more)


def _counted(kind: Kind, queues: Sequence[str]) -> tuple[list[Counted], bool]:
    found = loose.counted(queues, kind.column, most=MOST + 1, up_to=COARSE)
    if len(found) <= MOST:
        return found, False
    latest = loose.of_latest(queues, kind.column, each=max(20, LATEST // len(queues)))
    most = min(LARGEST_OF_LATEST, max(10, MOST // len(queues)))
    values = [value for value, _count in latest.most_common(most)]
    return loose.counted_values(queues, kind.column, values, up_to=COARSE), True


def _sized(kind: Kind, counted: Sequence[Counted]) -> list[tuple[Any, Part]]:
    """Those that were counted to the end, and the others as exactly as EXACT allows."""
    sizes = {place: each.count for place, each in enumerate(counted) if each.count >= COARSE}
    large = [counted[place] for place in sizes]
    # Numbers grow with time: between the first and the last one of a day lie hardly any others.
    ranges = [
        Range(each.queue, each.value if kind.column else None, *sorted((each.first, each.last)))
        for each in large
    ]
    sizes = {
        place: max(estimate, COARSE)
        for place, estimate in zip(sizes, rounded(ranges, column=kind.column), strict=True)
    }
    exact = _exactly(kind, counted, sizes)
    found = []
    for place, each in enumerate(counted):
        count = exact.get(place, sizes.get(place, each.count))
        part = Part(each.queue, count, each.first, each.last, about=place in sizes and place not in exact)
        found.append((kind.value(each.value) if kind.column else each.value, part))
    return found


def _exactly(kind: Kind, counted: Sequence[Counted], sizes: dict[int, int]) -> dict[int, int]:
    """By place, of those whose estimate `sizes` has: the smallest, as far as EXACT goes. Raises the estimate
    of one that turns out to be larger than keyset.COUNTED."""
    chosen, room = [], EXACT
    for place in sorted(sizes, key=lambda place: sizes[place]):
        room -= sizes[place]
        if room < 0 or sizes[place] > keyset.COUNTED * DOUBT:
            break
        chosen.append(place)
    some = [counted[place] for place in chosen]
    if not some:
        return {}
    if kind.column:
        wanted = [(each.queue, each.value) for each in some]
        counts = loose.count_each(wanted, kind.column, up_to=keyset.COUNTED + 1)
    else:
        counts = days.count_each([(each.queue, each.value) for each in some], up_to=keyset.COUNTED + 1)
    found = dict(zip(chosen, counts, strict=True))
    sizes |= {
        place: max(sizes[place], keyset.COUNTED) for place, count in found.items() if count > keyset.COUNTED
    }
    return {place: count for place, count in found.items() if 0 < count <= keyset.COUNTED}


def _merged(kind: Kind, parts: Iterable[tuple[Any | date, Part]], key: Any) -> list[Group]:
    """One group per value, over all queues."""
    of: dict[Any, list[Part]] = {}
    for value, part in parts:
        of.setdefault(value, []).append(part)
    groups = [
        Group(kind, value, tuple(sorted(some, key=lambda part: -part.count))) for value, some in of.items()
    ]
    return sorted(groups, key=key, reverse=True)
