"""Distinct values by a loose index scan: one step into the index per value, however many rows there are."""

from collections.abc import Iterable
from typing import Any

from django.db import connection

from dlq.models import DeadLetter

TABLE = DeadLetter._meta.db_table
# Each has an index (queue, state, column).
COLUMNS = frozenset({"fingerprint", "exception_type", "server_name", "activation_uuid", "delivery_count", "chapter"})


def distinct(queue: str, state: str, column: str, most: int) -> list[Any]:
    """The values of `column` among the letters of one queue in one state, ascending; at most `most`. None is no value.

    Raises ValueError for a column without an index for it."""
    if column not in COLUMNS:
        raise ValueError(f"no index for {column}")
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
