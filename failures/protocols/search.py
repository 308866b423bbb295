"""A page of what a filter finds and how many there are, in bounded time whatever is asked and however many
there are.

Rows are walked in the order of time, in windows: along the index of the condition that reaches furthest back
with as many rows, the other conditions read from the rows. Every window is bounded by a number of rows of
that index, the walk by BUDGET; where it had to stop it says at which instant, and the next page goes on from
there. A text is so looked for from the newest on: an index of its words would be paid by every protocol that
comes in, see docs/explanation/protocols.md.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Q

from console.database.statements import quick
from console.lists.keyset import COUNTED, Found, Place
from failures.models import FailureProtocol
from failures.protocols import properties
from failures.protocols.filter import BY_TIME, Query, Way

# Keys beyond any other.
LOWEST, HIGHEST = UUID(int=0), UUID(int=2**128 - 1)
# Long, and of one protocol only: not in lists.
WHOLE_ONLY = ("traceback", "properties")
# Rows of the first window, and of the largest.
WINDOW, WIDEST = 500, 16_000
# A message has few protocols, and so has most values of a property; each of so many is looked at.
FEW = 2000
BATCH = 500
# Seconds of one walk. The newest page takes one, any other two: one for its rows and one for the number of
# all.
BUDGET = 0.07


@dataclass(frozen=True, slots=True)
class Count:
    """Says that so many match, or (`more`) at least so many. `back_to`: where the search stopped before all
    were seen."""

    count: int
    more: bool = False
    back_to: datetime | None = None


@dataclass(frozen=True, slots=True)
class _Direction:
    """Leads into the past (`order` is `-`), or towards what is newer."""

    order: str
    beyond: str
    within: str
    last_key: UUID


OLDER = _Direction("-", "lt", "gte", LOWEST)
NEWER = _Direction("", "gt", "lte", HIGHEST)


def newest(asked: Query, size: int, most: int = COUNTED) -> tuple[Found[Place], Count]:
    """The newest `size`, which is no more than `most`, and how many match in all as `count` tells it: one
    walk."""
    with quick():
        known = _few(asked)
        if known is not None:
            return Found(sorted(known, reverse=True)[:size]), _bounded(len(known), most)
        found: Found[Place] = Found()
        total, back_to = 0, None
        for window in _windows(asked, None, OLDER):
            missing = size - len(found.places)
            there = _places(window, missing, OLDER) if missing else []
            found.places += there
            total += len(there) if len(there) < missing else _counted(window, most)
            if total > most:
                break
            back_to = window.edge
            if window.is_late:
                break
        if back_to is not None and len(found.places) < size:
            found.stopped_at = Place(back_to, OLDER.last_key)
        return found, _bounded(total, most, back_to)


def older_than(asked: Query, place: Place | None, size: int) -> Found[Place]:
    """The newest `size` below `place`; None: of all."""
    return _page(asked, place, size, OLDER)


def newer_than(asked: Query, place: Place, size: int) -> Found[Place]:
    """The `size` next above `place`."""
    found = _page(asked, place, size, NEWER)
    found.places.reverse()
    return found


def count(asked: Query, *, above: Place | None = None, most: int = COUNTED) -> Count:
    """Returns how many match (`above` this place), looking at no more than it takes to know `most` and
    one."""
    with quick():
        known = _few(asked)
        if known is not None:
            return _bounded(sum(above is None or each > above for each in known), most)
        total, back_to = 0, None
        for window in _windows(asked, None, OLDER, floor=above):
            total += _counted(window, most)
            if total > most:
                break
            back_to = window.edge
            if window.is_late:
                break
        return _bounded(total, most, back_to)


def _bounded(total: int, most: int, back_to: datetime | None = None) -> Count:
    if total > most:
        return Count(most, more=True)
    return Count(total, more=back_to is not None, back_to=back_to)


def _page(asked: Query, place: Place | None, size: int, direction: _Direction) -> Found[Place]:
    with quick():
        known = _few(asked)
        if known is not None:
            there = [
                each
                for each in known
                if place is None or (each < place if direction is OLDER else each > place)
            ]
            return Found(sorted(there, reverse=direction is OLDER)[:size])
        found: Found[Place] = Found()
        for window in _windows(asked, place, direction):
            found.places += _places(window, size - len(found.places), direction)
            if len(found.places) >= size:
                break
            if window.is_late and window.edge is not None:
                found.stopped_at = Place(window.edge, direction.last_key)
                break
        return found


def _places(window: "_Window", most: int, direction: _Direction) -> list[Place]:
    found: list[Place] = []
    for part in window.parts:
        rows = FailureProtocol.objects.filter(part).order_by(
            f"{direction.order}occurred_at", f"{direction.order}pk"
        )
        found += [Place(*row) for row in rows.values_list("occurred_at", "pk")[:most]]
    return sorted(found, reverse=direction is OLDER)[:most]


def _counted(window: "_Window", most: int) -> int:
    return sum(FailureProtocol.objects.filter(each).order_by()[: most + 1].count() for each in window.parts)


def _few(asked: Query) -> list[Place] | None:
    """All that match, where a message key or properties leave few to be looked at; else None."""
    rows = FailureProtocol.objects.order_by()
    keys = _known(asked)
    if keys is None or len(keys) > FEW:
        return None
    found: list[Place] = []
    for start in range(0, len(keys), BATCH):
        batch = rows.filter(asked.rest, pk__in=keys[start : start + BATCH])
        found += [Place(*row) for row in batch.values_list("occurred_at", "pk")]
    since, until = asked.since, asked.until
    return [
        each for each in found if (since is None or each.at >= since) and (until is None or each.at < until)
    ]


def _known(asked: Query) -> list[UUID] | None:
    """The first rows past FEW that an index without an order knows; None: none is asked, or it is not whole
    yet."""
    if asked.message_key:
        rows = FailureProtocol.objects.filter(message_key=asked.message_key).order_by()
        return list(rows.values_list("pk", flat=True)[: FEW + 1])
    if asked.properties and properties.is_complete():
        return properties.INDEX.candidates(asked.properties, FEW + 1)
    return None


# -- the list page by page, to what is older and back to what is newer --------------------------------------


@dataclass(frozen=True, slots=True)
class ProtocolPage:
    """`places` newest first. What is older lies below `older`, what is newer above `newer`; None: nothing
    does. `stopped_at`: so far was looked, in the time there was."""

    places: Sequence[Place]
    older: Place | None = None
    newer: Place | None = None
    stopped_at: Place | None = None


def listed(
    asked: Query, *, before: Place | None, after: Place | None, size: int
) -> tuple[ProtocolPage, Count]:
    """`part_of`, and how many match in all."""
    if before is None and after is None:
        found, counted = newest(asked, size + 1)
        return _downwards(found, None, size), counted
    return part_of(asked, before=before, after=after, size=size), count(asked)


def part_of(
    asked: Query, *, before: Place | None = None, after: Place | None = None, size: int
) -> ProtocolPage:
    """Returns what is above `after` where there is enough of it, else what is below `before`, else the
    newest."""
    if after is not None:
        found = newer_than(asked, after, size + 1)
        if len(found.places) > size:
            places = found.places[-size:]
            return ProtocolPage(places, older=places[-1], newer=places[0])
        if found.stopped_at is not None:
            older = found.places[-1] if found.places else after
            return ProtocolPage(
                found.places, older=older, newer=found.stopped_at, stopped_at=found.stopped_at
            )
        before = None
    return _downwards(older_than(asked, before, size + 1), before, size)


def _downwards(found: Found[Place], before: Place | None, size: int) -> ProtocolPage:
    """`found`: one more than `size`, where there is one."""
    places = found.places[:size]
    older_end = places[-1] if len(found.places) > size else found.stopped_at
    newer_end = (places[0] if places else before) if before is not None else None
    return ProtocolPage(places, older=older_end, newer=newer_end, stopped_at=found.stopped_at)


def protocols_at(places: Sequence[Place]) -> list[FailureProtocol]:
    """Returns them without what is long, in the order of `places`. What was deleted meanwhile is not among
    them."""
    rows = FailureProtocol.objects.defer(*WHOLE_ONLY).in_bulk([place.key for place in places])
    return [rows[place.key] for place in places if place.key in rows]


# -- windows -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Window:
    """`parts` hold its rows that match, none in two of them. `edge`: the instant where it ends, None: nothing
    lies beyond. `until`: when the walk has to end, of the monotonic clock."""

    parts: list[Q]
    edge: datetime | None
    until: float

    @property
    def is_late(self) -> bool:
        return time.monotonic() > self.until


def _windows(
    asked: Query, place: Place | None, direction: _Direction, floor: Place | None = None
) -> Iterator[_Window]:
    end = time.monotonic() + BUDGET
    when = asked.times
    if place is not None:
        when &= _beyond(place, direction)
    if floor is not None:
        when &= _beyond(floor, NEWER)
    way = _sparsest(asked, when, direction)
    width = WINDOW
    while True:
        began = time.monotonic()
        edge = _edge(way, when, width, direction)
        inside = when if edge is None else when & Q(**{f"occurred_at__{direction.within}": edge})
        yield _Window([asked.on(way, start) & inside for start in way.starts], edge, end)
        if edge is None:
            return
        when &= Q(**{f"occurred_at__{direction.beyond}": edge})
        if time.monotonic() - began < BUDGET / 5:
            width = min(width * 2, WIDEST)


def _beyond(place: Place, direction: _Direction) -> Q:
    past = direction.beyond
    same_or_past = Q(**{f"occurred_at__{past}e": place.at})
    return same_or_past & (Q(**{f"occurred_at__{past}": place.at}) | Q(**{f"pk__{past}": place.key}))


def _sparsest(asked: Query, when: Q, direction: _Direction) -> Way:
    """The way on which the next WINDOW rows reach furthest."""
    if len(asked.ways) <= 1:
        return asked.ways[0] if asked.ways else BY_TIME
    best, furthest = asked.ways[0], None
    for way in asked.ways:
        edge = _edge(way, when, WINDOW, direction)
        if edge is None:
            return way
        if furthest is None or (edge < furthest if direction is OLDER else edge > furthest):
            best, furthest = way, edge
    return best


def _edge(way: Way, when: Q, width: int, direction: _Direction) -> datetime | None:
    """Where no start of the way has more than `width` rows until there; None where none has so many."""
    edges: list[datetime] = []
    for start in way.starts:
        rows = FailureProtocol.objects.filter(start.q, when).order_by(f"{direction.order}occurred_at")
        edges += rows.values_list("occurred_at", flat=True)[width - 1 : width]
    if not edges:
        return None
    return max(edges) if direction is OLDER else min(edges)
