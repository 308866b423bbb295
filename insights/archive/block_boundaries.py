"""Cuts a range of receipt into blocks: each within one day, of about as many rows, at instants where rows
meet."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, time, timedelta

from insights.archive.statements import ArchivedKind

BLOCK_ROWS = 250_000
# Parts of a block that are read beside each other.
PARTS = 4


@dataclass(frozen=True, slots=True)
class Cut:
    """`empty`: there is nothing in it, however many days it has."""

    first: datetime
    last: datetime
    splits: Sequence[datetime] = field(default=())
    empty: bool = False


def cut(kind: ArchivedKind, first: datetime, last: datetime, *, rows: int = BLOCK_ROWS) -> Iterator[Cut]:
    """Cuts from `first` on without a gap. What is empty at the end is left for the next time, unless its day
    is over."""
    at = first
    while at < last:
        following = kind.earliest(at, last)
        full = last if following is None else max(at, day_of(following))
        if at < full and _is_empty(kind, at, full):
            if following is None:
                full = max(at, day_of(last))  # the day that goes on is looked at again
            if at < full:
                yield Cut(at, full, empty=True)
            if following is None:
                return
            at = full
            continue
        until = min(last, day_of(at) + timedelta(days=1))
        if kind.count(at, until) or until < last:
            yield from _of_day(kind, at, until, rows)
        elif until == day_of(until):
            yield Cut(at, until, empty=True)
        at = until


def day_of(at: datetime) -> datetime:
    return datetime.combine(at.astimezone(UTC).date(), time(), UTC)


def _is_empty(kind: ArchivedKind, first: datetime, last: datetime) -> bool:
    """Says so; where rows of a kind are touched later, nothing received does not mean that there is
    nothing."""
    return kind.ranged or not kind.count(first, last)


def _of_day(kind: ArchivedKind, first: datetime, last: datetime, rows: int) -> Iterator[Cut]:
    if not kind.ranged:
        yield Cut(first, last)
        return
    edges = list(_edges(kind, first, last, max(1, rows // PARTS)))
    for start in range(0, len(edges) - 1, PARTS):
        some = edges[start : start + PARTS + 1]
        yield Cut(some[0], some[-1], some[1:-1])


def _edges(kind: ArchivedKind, first: datetime, last: datetime, rows: int) -> Iterator[datetime]:
    """Instants between which there are about so many rows; all of one instant are together."""
    yield first
    at = first
    while True:
        following = kind.within(at, last).order_by(kind.received).values_list(kind.received, flat=True)
        edge = next(iter(following[rows : rows + 1]), None)
        if edge is not None and edge == at:
            edge = kind.earliest(at + timedelta(microseconds=1), last)
        if edge is None:
            break
        yield edge
        at = edge
    yield last
