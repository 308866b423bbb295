"""Distinct values by a loose index scan: one step into the index per value, however many rows there are."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection

from dlq.models import DeadLetter

TABLE = DeadLetter._meta.db_table
# Each has an index (queue, state, column).
COLUMNS = frozenset({"fingerprint", "exception_type", "server_name", "activation_uuid", "delivery_count", "chapter"})


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
    """The same of these values only."""
    _check(column)
    found = []
    for value in values:
        found += _counted_where(queues_, state, f"{column} = %s", [_adapted(column, value)], column, value, up_to)
    return found


def _without(queues_: Sequence[str], state: str, column: str, up_to: int) -> list[Counted]:
    return _counted_where(queues_, state, f"{column} IS NULL", [], column, None, up_to)


def _counted_where(
    queues_: Sequence[str], state: str, which: str, parameters: Sequence[Any], column: str, value: Any, up_to: int
) -> list[Counted]:
    here = f"FROM {TABLE} WHERE queue = places.q AND state = %s AND {which}"
    place = "(CAST(%s AS varchar(300)))"
    sql = (
        f"WITH places(q) AS (VALUES {', '.join([place] * len(queues_))}) "
        f"SELECT q, (SELECT count(*) FROM (SELECT 1 {here} LIMIT %s) AS few), "
        f"(SELECT id {here} ORDER BY {column}, id LIMIT 1), "
        f"(SELECT id {here} ORDER BY {column} DESC, id DESC LIMIT 1) FROM places"
    )
    once = [state, *parameters]
    with connection.cursor() as cursor:
        cursor.execute(sql, [*queues_, *once, up_to, *once, *once])
        rows = cursor.fetchall()
    return [Counted(q, value, count, first, last) for q, count, first, last in rows if count and first and last]


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
