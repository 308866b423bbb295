"""Rows by where they lie in their table, which finds and deletes them without an index, page after page.

A place is no name: another row may lie there by the time. So what is deleted must fulfil the whole condition
again.
"""

from collections.abc import Iterable
from typing import Any

from django.db import connection, models, transaction
from django.db.models import QuerySet
from django.db.models.expressions import RawSQL


def row_place(model: type[models.Model]) -> RawSQL:
    """Returns the place of a row, as an annotation."""
    return RawSQL(f"{_table(model)}.{'ctid' if connection.vendor == 'postgresql' else 'rowid'}", [])


def counts_and_places(
    rows: QuerySet[Any, tuple[Any, ...]],
) -> tuple[list[tuple[Any, bool, int]], list[str]]:
    """Reads rows of (value, whether it goes, place) once. Returns [(value, whether it goes, how many)], and
    the places of all that go, in the order of the table."""
    found, parameters = rows.query.get_compiler(connection=connection).as_sql()
    going = "(SELECT place FROM found WHERE goes ORDER BY place) AS going"
    native = connection.vendor == "postgresql"
    joined = "string_agg(place::text, ' ')" if native else "group_concat(place, ' ')"
    with transaction.atomic(), connection.cursor() as cursor:
        if native:
            cursor.execute(_READ_AHEAD)
        cursor.execute(
            f"WITH found (value, goes, place) AS MATERIALIZED ({found}) "
            "SELECT value, goes, count(*), NULL FROM found GROUP BY value, goes "
            f"UNION ALL SELECT NULL, NULL, NULL, {joined} FROM {going}",
            parameters,
        )
        answer = cursor.fetchall()
    counts = [(value, bool(goes), count) for value, goes, count, _ in answer if count is not None]
    return counts, "".join(places for *_, count, places in answer if count is None and places).split()


def at_places(places: Iterable[str]) -> tuple[str, str]:
    """Returns the condition that a row lies at one of these as SQL with one parameter, and this."""
    if connection.vendor == "postgresql":
        return "ctid = ANY(%s::tid[])", "{" + ",".join(f'"{place}"' for place in places) + "}"
    return "rowid IN (SELECT value FROM json_each(%s))", f"[{','.join(places)}]"


def delete_where(
    model: type[models.Model], condition: str, parameters: list[Any], *, by: str
) -> list[tuple[Any, int]]:
    """Returns how many of each value of the column `by`, some values perhaps more than once."""
    statement = f"DELETE FROM {_table(model)} WHERE {condition} RETURNING {by}"
    if connection.vendor == "postgresql":
        statement = f"WITH gone AS ({statement}) SELECT {by}, count(*) FROM gone GROUP BY 1"
    else:
        statement += ", 1"
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return list(cursor.fetchall())


# Pages that are not in memory are asked for together, not one after the other, until the end of the
# transaction. 0: the platform cannot.
_READ_AHEAD = (
    "SELECT set_config('effective_io_concurrency', '100', true) FROM pg_settings "
    "WHERE name = 'effective_io_concurrency' AND setting <> '0'"
)


def _table(model: type[models.Model]) -> str:
    return connection.ops.quote_name(model._meta.db_table)
