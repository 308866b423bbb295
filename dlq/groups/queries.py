"""Describes how many dead letters there are about, where counting each would take too long."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from django.db import connection

from console.database.bulk import WHOLE, values_table
from console.database.statements import quick
from console.lists import keyset
from console.ui.amounts import about, number, two_digits
from dlq.dead_letters.queries import ranges as loose
from dlq.dead_letters.queries.counts import CountedRange, by_day, count_ranges, ends_of
from dlq.dead_letters.queries.ranges import IS_DEAD, QUEUE, TABLE, ValueCount, type_of
from dlq.groups.rules import Kind

# Windows over the numbers of the dead letters of one range, how many dead letters are read in each, and in
# all of one statement.
WINDOWS, FEWEST_WINDOWS, READ, READ_OF_ALL = 20, 4, 50, 40_000
# Windows of one statement: databases bound its parameters.
AT_ONCE = 5000


@dataclass(frozen=True, slots=True)
class Range:
    """Dead letters of a queue with one value of a column, as the database has it. `first` and `last` are the
    lowest and the highest of their numbers."""

    queue: str
    value: Any
    first: int
    last: int


def rounded(ranges: Sequence[Range], *, column: str = "") -> list[int]:
    """Estimates to two digits, by a few statements. Of what is dead: an index (queue, `column`, id) holds it.
    In each window between first and last so many numbers are dead letters as among the first READ there."""
    totals = [0.0] * len(ranges)
    windows = max(FEWEST_WINDOWS, min(WINDOWS, READ_OF_ALL // (READ * max(1, len(ranges)))))
    for known in (True, False):
        some = [(place, each) for place, each in enumerate(ranges) if (each.value is not None) is known]
        wide = [(place, each, *ends) for place, each in some for ends in _windows(each, windows)]
        for begin in range(0, len(wide), AT_ONCE):
            for place, start, end, read, highest in _read(wide[begin : begin + AT_ONCE], column, known):
                totals[place] += read if read < READ else READ * (end - start) / (highest - start + 1)
    return [two_digits(round(total)) for total in totals]


def _windows(each: Range, windows: int) -> Iterator[tuple[int, int]]:
    width = max(1, -(-(each.last - each.first + 1) // windows))
    for start in range(each.first, each.last + 1, width):
        yield start, min(start + width, each.last + 1)


def _read(wide: Sequence[tuple[int, Range, int, int]], column: str, known: bool) -> list[tuple[Any, ...]]:
    which = "" if not column else f" AND {column} = wide.v" if known else f" AND {column} IS NULL"
    here = (
        f"FROM {TABLE} WHERE queue = wide.q AND {IS_DEAD}{which} AND id >= wide.lo AND id "
        f"< wide.hi ORDER BY id"
    )
    rows = [(place, lo, hi, each.queue, each.value) for place, each, lo, hi in wide]
    columns = {
        "place": WHOLE,
        "lo": WHOLE,
        "hi": WHOLE,
        "q": QUEUE,
        "v": type_of(column) if column else WHOLE,
    }
    given, parameters = values_table("wide", columns, rows)
    sql = (
        f"WITH {given} "
        f"SELECT place, lo, hi, (SELECT count(*) || ' ' || max(id) FROM (SELECT id {here} LIMIT {READ}) AS "
        f"few) "
        f"FROM wide"
    )
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return [(*where, *map(int, read.split())) for *where, read in cursor.fetchall() if read]


# -- the groups of what is dead, the largest first, in bounded time ------------------------------------------
# Each group of a queue is a range of an index: a loose scan finds the groups, and each is counted up to
# COARSE. The large ones are estimated from windows spread over their numbers, and those that may be no larger
# than COUNTED are counted exactly, the smallest first, until EXACT dead letters are read. Where there are
# more than MOST groups, those are shown whose dead letters are among the latest. It is a few statements,
# however many groups there are, and tells the same under any load.


# Groups that are counted, of all queues together, each part in a queue by itself.
MOST = 5_000
COARSE = 400
EXACT = 100_000
# An estimate that is larger by less may be of no more than keyset.COUNTED.
DOUBT = 1.2
# Where there are too many groups: so many of the latest dead letters say which ones are shown.
LATEST = 2_000
LARGEST_OF_LATEST = 100


@dataclass(frozen=True, slots=True)
class Part:
    """A group within one queue. `about`: the count is an estimate. `first` and `last`: numbers of dead
    letters."""

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
    """`value` empty: dead letters of which no protocol is known. The largest part first."""

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
        """Returns how many, for people."""
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
    """Groups the dead letters in these queues."""
    if not queues:
        return Groups([])
    with quick():
        if not kind.column:
            counted, more = by_day(queues, up_to=COARSE)
            return Groups(_merged(kind, _sized(kind, counted), key=lambda group: group.value), more)
        counted, more = _counted(kind, queues)
        return Groups(_merged(kind, _sized(kind, counted), key=lambda group: group.count), more)


def _counted(kind: Kind, queues: Sequence[str]) -> tuple[list[ValueCount], bool]:
    found = loose.counted(queues, kind.column, most=MOST + 1, up_to=COARSE)
    if len(found) <= MOST:
        return found, False
    latest = loose.of_latest(queues, kind.column, each=max(20, LATEST // len(queues)))
    most = min(LARGEST_OF_LATEST, max(10, MOST // len(queues)))
    values = [value for value, _count in latest.most_common(most)]
    return loose.counted_values(queues, kind.column, values, up_to=COARSE), True


def _sized(kind: Kind, counted: Sequence[ValueCount]) -> list[tuple[Any, Part]]:
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


def _exactly(kind: Kind, counted: Sequence[ValueCount], sizes: dict[int, int]) -> dict[int, int]:
    """Counts, by place, those whose estimate `sizes` has: the smallest, as far as EXACT goes. Raises the
    estimate of one that turns out to be larger than keyset.COUNTED."""
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
        spans = [CountedRange(each.queue, *ends_of(each.value)) for each in some]
        counts = count_ranges(spans, keyset.COUNTED + 1)
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
