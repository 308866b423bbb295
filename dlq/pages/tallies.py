"""Counts of dead letters of many queues: each bounded, many to a statement, however many letters there are."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection

from dlq.loose import IS_DEAD
from dlq.models import DeadLetter

# Queries of one statement: SQLite takes no more than 500.
AT_ONCE = 200


@dataclass(frozen=True, slots=True)
class Tally:
    """Letters in `queue` that are dead, or in any state (`ever`), seen from `since` on and before `until`."""

    queue: str
    since: datetime | None = None
    until: datetime | None = None
    ever: bool = False


def tallies(wanted: Sequence[Tally], most: int) -> list[int]:
    """One count each, at most `most`; each reads one range of an index."""
    table = connection.ops.quote_name(DeadLetter._meta.db_table)
    counts = [0] * len(wanted)
    for first in range(0, len(wanted), AT_ONCE):
        queries, values = [], []
        for index, tally in enumerate(wanted[first : first + AT_ONCE], start=first):
            where, found = _where(tally)
            some = f"SELECT 1 FROM {table} WHERE {where} LIMIT {int(most)}"
            queries.append(f"SELECT {index}, (SELECT count(*) FROM ({some}) AS part)")
            values += found
        for index, count in _rows(" UNION ALL ".join(queries), values):
            counts[index] = int(count)
    return counts


def _where(tally: Tally) -> tuple[str, list[Any]]:
    where = ["queue = %s"] if tally.ever else ["queue = %s", IS_DEAD]
    values: list[Any] = [tally.queue]
    for column, instant in (("seen_at >= %s", tally.since), ("seen_at < %s", tally.until)):
        if instant is not None:
            where.append(column)
            values.append(connection.ops.adapt_datetimefield_value(instant))
    return " AND ".join(where), values


def ends(queues: Sequence[str]) -> dict[str, tuple[int, int]]:
    """By queue: the number of its oldest letter (as the feed saw it) and of its newest. One without letters is left
    out."""
    table = connection.ops.quote_name(DeadLetter._meta.db_table)
    found = {}
    for first in range(0, len(queues), AT_ONCE):
        some = queues[first : first + AT_ONCE]
        dead = f"SELECT id FROM {table} WHERE queue = %s AND {IS_DEAD} ORDER BY"
        one = f"SELECT %s, ({dead} seen_at LIMIT 1), ({dead} id DESC LIMIT 1)"
        values = [value for queue in some for value in (queue, queue, queue)]
        for queue, oldest, newest in _rows(" UNION ALL ".join([one] * len(some)), values):
            if oldest is not None and newest is not None:
                found[queue] = (oldest, newest)
    return found


def kinds(queues: Sequence[str], latest: int) -> dict[str, tuple[str, str, int, int]]:
    """By queue, of its `latest` letters: exception type and fingerprint of most of them, how many these are, of how
    many that was judged."""
    table = connection.ops.quote_name(DeadLetter._meta.db_table)
    some = f"SELECT exception_type, fingerprint FROM {table} WHERE queue = %s AND {IS_DEAD}"
    one = f"SELECT %s AS queue, exception_type, fingerprint, count(*) AS letters FROM ({some} ORDER BY id DESC LIMIT {int(latest)}) AS part GROUP BY exception_type, fingerprint"  # noqa: E501
    found: dict[str, tuple[str, str, int, int]] = {}
    for first in range(0, len(queues), AT_ONCE):
        part = queues[first : first + AT_ONCE]
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
