"""Distinct values by a loose index scan: one step into the index per value, however many rows there are."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection

from dlq.models import DeadLetter

TABLE = DeadLetter._meta.db_table
# Each has an index (queue, state, column).
COLUMNS = frozenset({"fingerprint", "exception_type", "server_name", "activation_uuid", "delivery_count", "chapter"})
# Queries of one statement: SQLite takes no more than 500.
AT_ONCE = 200


@dataclass(frozen=True, slots=True)
class Counted:
    """The letters of one queue with one value. `count` up to the bound that was asked for; `first` and `last` are the
    lowest and the highest of their numbers."""

    queue: str
    value: Any
    count: int
    first: int
    last: int


def distinct(queue: str, state: str, column: str, most: int) -> list[Any]:
    """The values of `column` among the letters of one queue in one state, ascending; at most `most`. None is no value.

    Raises ValueError for a column without an index for it."""
    _check(column)
    where = f"{column} IS NOT NULL AND queue = %s AND state = %s"
    return _steps(column, where, [queue, state], most)


def queues(most: int = 2000) -> list[str]:
    """Names of all queues that ever held a letter."""
    return _steps("queue", "queue IS NOT NULL", [], most)


def distinct_in(queues_: Iterable[str], states: Iterable[str], column: str, most: int) -> set[Any]:
    """Over several queues and states; may stop at `most` + 1 values: then there are more."""
    found: set[Any] = set()
    wanted = list(states)
    for queue in queues_:
        for state in wanted:
            found.update(distinct(queue, state, column, most + 1))
        if len(found) > most:
            break
    return found


def counted(queues_: Sequence[str], state: str, column: str, *, most: int, up_to: int) -> list[Counted]:
    """Every value of `column` in every queue that has letters of it in `state`, each counted up to `up_to`; at most
    `most` of them. Letters without a value are one more of each queue, with the value None."""
    _check(column)
    if not queues_:
        return []
    here = f"FROM {TABLE} WHERE queue = step.q AND state = %s"
    with_value = f"{here} AND {column} = step.v"
    place = "(CAST(%s AS varchar(300)))"
    sql = (
        f"WITH RECURSIVE places(q) AS (VALUES {', '.join([place] * len(queues_))}), "
        f"step(q, v) AS ("
        f"SELECT q, (SELECT {column} FROM {TABLE} WHERE queue = places.q AND state = %s AND {column} IS NOT NULL "
        f"ORDER BY {column} LIMIT 1) FROM places UNION ALL "
        f"SELECT q, (SELECT {column} {here} AND {column} > step.v ORDER BY {column} LIMIT 1) "
        f"FROM step WHERE v IS NOT NULL) "
        f"SELECT q, v, (SELECT count(*) FROM (SELECT 1 {with_value} LIMIT %s) AS few), "
        f"(SELECT id {with_value} ORDER BY {column}, id LIMIT 1), "
        f"(SELECT id {with_value} ORDER BY {column} DESC, id DESC LIMIT 1) "
        f"FROM step WHERE v IS NOT NULL LIMIT %s"
    )
    values: list[Any] = [*queues_, state, state, state, up_to, state, state, most]
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        found = [Counted(*row) for row in cursor.fetchall()]
    # A letter may go between the count and the look at its number.
    found = [each for each in found if each.count and each.first is not None and each.last is not None]
    nulls = _without(queues_, state, column, up_to) if DeadLetter._meta.get_field(column).null else []
    return [*found, *nulls]


def counted_values(
    queues_: Sequence[str], state: str, column: str, values: Sequence[Any], *, up_to: int
) -> list[Counted]:
    """The same of these values only, none of which is None."""
    _check(column)
    if not queues_ or not values:
        return []
    adapted = [_adapted(column, value) for value in values]
    sql = (
        f"WITH {_places(queues_)}, wanted(v) AS (VALUES {', '.join(['(%s)'] * len(values))}) "
        f"SELECT q, v, {_facts(f'{column} = wanted.v', column)} FROM places CROSS JOIN wanted"
    )
    with connection.cursor() as cursor:
        cursor.execute(sql, [*queues_, *adapted, state, up_to, state, state])
        return [Counted(*row) for row in cursor.fetchall() if row[2] and row[3] is not None and row[4] is not None]


def count_each(wanted: Sequence[tuple[str, Any]], state: str, column: str, *, up_to: int) -> list[int]:
    """How many letters each of these queues has with this value (None: without one), up to `up_to`."""
    _check(column)
    counts = [0] * len(wanted)
    for known in (True, False):
        some = [(place, queue, value) for place, (queue, value) in enumerate(wanted) if (value is not None) is known]
        if not some:
            continue
        which = f"{column} = wanted.v" if known else f"{column} IS NULL"
        sql = (
            f"WITH wanted(place, q, v) AS (VALUES {', '.join(['(%s, %s, %s)'] * len(some))}) "
            f"SELECT place, (SELECT count(*) FROM (SELECT 1 FROM {TABLE} WHERE queue = wanted.q AND state = %s "
            f"AND {which} LIMIT %s) AS few) FROM wanted"
        )
        values = [each for place, queue, value in some for each in (place, queue, _adapted(column, value))]
        with connection.cursor() as cursor:
            cursor.execute(sql, [*values, state, up_to])
            for place, count in cursor.fetchall():
                counts[place] = count
    return counts


def of_latest(queues_: Sequence[str], state: str, column: str, *, each: int) -> Counter[Any]:
    """How often each value is among the latest `each` letters of every queue; None is no value."""
    _check(column)
    found: Counter[Any] = Counter()
    one = (
        f"SELECT v, count(*) FROM (SELECT {column} AS v FROM {TABLE} WHERE queue = %s AND state = %s "
        f"ORDER BY id DESC LIMIT %s) AS latest WHERE v IS NOT NULL GROUP BY v"
    )
    for begin in range(0, len(queues_), AT_ONCE):
        some = queues_[begin : begin + AT_ONCE]
        with connection.cursor() as cursor:
            cursor.execute(
                " UNION ALL ".join([one] * len(some)), [value for queue in some for value in (queue, state, each)]
            )
            for value, count in cursor.fetchall():
                found[value] += count
    return found


def _without(queues_: Sequence[str], state: str, column: str, up_to: int) -> list[Counted]:
    sql = f"WITH {_places(queues_)} SELECT q, {_facts(f'{column} IS NULL', column)} FROM places"
    with connection.cursor() as cursor:
        cursor.execute(sql, [*queues_, state, up_to, state, state])
        rows = cursor.fetchall()
    return [Counted(q, None, count, first, last) for q, count, first, last in rows if count and first and last]


def _places(queues_: Sequence[str]) -> str:
    return f"places(q) AS (VALUES {', '.join(['(CAST(%s AS varchar(300)))'] * len(queues_))})"


def _facts(which: str, column: str) -> str:
    """Count, first and last number of the letters of `places.q`. Values: state, bound, state, state."""
    here = f"FROM {TABLE} WHERE queue = places.q AND state = %s AND {which}"
    return (
        f"(SELECT count(*) FROM (SELECT 1 {here} LIMIT %s) AS few), (SELECT id {here} ORDER BY {column}, id LIMIT 1), "
        f"(SELECT id {here} ORDER BY {column} DESC, id DESC LIMIT 1)"
    )


def _adapted(column: str, value: Any) -> Any:
    field: Any = DeadLetter._meta.get_field(column)
    return field.get_db_prep_value(value, connection)


def _check(column: str) -> None:
    if column not in COLUMNS:
        raise ValueError(f"no index for {column}")


def _steps(column: str, where: str, parameters: list[str], most: int) -> list[Any]:
    # Not min(): PostgreSQL has none for ids of activations.
    lowest = f"SELECT {column} FROM {TABLE} WHERE {where}"
    end = f"ORDER BY {column} LIMIT 1"
    sql = (
        f"WITH RECURSIVE step(v) AS (SELECT ({lowest} {end}) UNION ALL "
        f"SELECT ({lowest} AND {column} > step.v {end}) FROM step WHERE step.v IS NOT NULL) "
        "SELECT v FROM step WHERE v IS NOT NULL LIMIT %s"
    )
    with connection.cursor() as cursor:
        cursor.execute(sql, [*parameters, *parameters, most])
        return [value for (value,) in cursor.fetchall()]
