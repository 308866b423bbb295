"""Counts of dead letters of many queues: each bounded, many to a statement, however many dead letters there
are."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection

from console.database.bulk import INSTANT, WHOLE, values_table
from dlq.dead_letters.queries.ranges import IS_DEAD, QUEUE, TABLE, queues_table

# Queues of one statement. They are its values: a statement with a part for each takes longer to plan than to
# carry out.
AT_ONCE = 1000
# Queries of one statement: SQLite takes no more than 500.
QUERIES = 200


@dataclass(frozen=True, slots=True)
class CountedRange:
    """Dead letters in `queue` that are dead, or in any state (`ever`), seen from `since` on and before
    `until`."""

    queue: str
    since: datetime | None = None
    until: datetime | None = None
    ever: bool = False

    @property
    def shape(self) -> tuple[bool, bool, bool]:
        return self.since is not None, self.until is not None, self.ever


def count_ranges(wanted: Sequence[CountedRange], most: int) -> list[int]:
    """One count each, at most `most`; each reads one range of an index."""
    counts = [0] * len(wanted)
    for shape in {each.shape for each in wanted}:
        alike = [(place, each) for place, each in enumerate(wanted) if each.shape == shape]
        for first in range(0, len(alike), AT_ONCE):
            for place, count in _counted(alike[first : first + AT_ONCE], shape, most):
                counts[place] = int(count)
    return counts


def _counted(
    alike: Sequence[tuple[int, CountedRange]], shape: tuple[bool, bool, bool], most: int
) -> Iterator[tuple[Any, ...]]:
    since, until, ever = shape
    which = [
        "queue = wanted.q",
        *(["seen_at >= wanted.since"] if since else []),
        *(["seen_at < wanted.until"] if until else []),
        *([] if ever else [IS_DEAD]),
    ]
    adapt = connection.ops.adapt_datetimefield_value
    rows = [
        (place, each.queue, each.since and adapt(each.since), each.until and adapt(each.until))
        for place, each in alike
    ]
    columns = {"place": WHOLE, "q": QUEUE, "since": INSTANT, "until": INSTANT}
    given, parameters = values_table("wanted", columns, rows)
    return _rows(
        f"WITH {given} SELECT place, (SELECT count(*) FROM ("
        f"SELECT 1 FROM {TABLE} WHERE {' AND '.join(which)} LIMIT {int(most)}) AS part) FROM wanted",
        parameters,
    )


def ends(queues: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Returns, by queue, the number of its oldest dead letter (as the feed saw it) and of its newest. One
    without dead letters is left out."""
    found = {}
    dead = f"SELECT id FROM {TABLE} WHERE queue = wanted.q AND {IS_DEAD} ORDER BY"
    for first in range(0, len(queues), AT_ONCE):
        some = queues[first : first + AT_ONCE]
        given, parameters = queues_table("wanted", some)
        statement = f"WITH {given} SELECT q, ({dead} seen_at LIMIT 1), ({dead} id DESC LIMIT 1) FROM wanted"
        for queue, oldest, newest in _rows(statement, parameters):
            if oldest is not None and newest is not None:
                found[queue] = (oldest, newest)
    return found


def kinds(queues: Sequence[str], latest: int) -> dict[str, tuple[str, str, int, int]]:
    """Returns, by queue, of its `latest` dead letters: exception type and fingerprint of most of them, how
    many these are, of how many that was judged."""
    what = "exception_type, fingerprint"
    some = f"SELECT {what} FROM {TABLE} WHERE queue = %s AND {IS_DEAD} ORDER BY id DESC LIMIT {int(latest)}"
    one = f"SELECT %s AS queue, {what}, count(*) AS letters FROM ({some}) AS part GROUP BY {what}"
    found: dict[str, tuple[str, str, int, int]] = {}
    for first in range(0, len(queues), QUERIES):
        part = queues[first : first + QUERIES]
        values = [value for queue in part for value in (queue, queue)]
        for queue, kind, fingerprint, count in _rows(" UNION ALL ".join([one] * len(part)), values):
            before = found.get(queue, ("", "", 0, 0))
            best = (kind, fingerprint, count) if count > before[2] else before[:3]
            found[queue] = (*best, before[3] + count)
    return found


def _rows(statement: str, values: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    if not statement:
        return
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        yield from cursor.fetchall()
