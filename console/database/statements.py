"""Estimates, bounds on statements, expressions in the words of each database, and rows by their places."""

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from django.db import connection, models, transaction
from django.db.models import Aggregate, QuerySet, TextField
from django.db.models.expressions import RawSQL

# Milliseconds after which PostgreSQL gives a statement up.
PATIENCE = 5000


def estimated_rows(rows: QuerySet[Any]) -> int | None:
    """Returns how many PostgreSQL expects from its statistics; SQLite keeps none."""
    if connection.vendor != "postgresql":
        return None
    plan = rows.order_by().explain(format="json")
    return int(json.loads(plan)[0]["Plan"]["Plan Rows"])


@contextmanager
def quick() -> Iterator[None]:
    """Bounds statements on PostgreSQL: indexes wherever there is one, for a guess that matches are everywhere
    is dear where they are not; and an end to every statement."""
    if connection.vendor != "postgresql":
        yield
        return
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(
                f"SET LOCAL enable_seqscan = off; SET LOCAL jit = off; SET LOCAL statement_timeout = "
                f"{PATIENCE}"
            )
        yield
        with connection.cursor() as cursor:
            cursor.execute("RESET enable_seqscan; RESET jit; RESET statement_timeout")


def bound_lock_waits(milliseconds: int) -> None:
    """Waits no longer for a lock until the end of the transaction; SQLite does by the busy timeout of the
    connection."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL lock_timeout = {int(milliseconds)}")


def oldest_transaction() -> datetime | None:
    """Returns when the oldest one of others began that is not over on PostgreSQL. SQLite has one writer."""
    if connection.vendor != "postgresql":
        return None
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT min(xact_start) FROM pg_stat_activity WHERE datname = current_database() "
            "AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
        )
        began: datetime | None = cursor.fetchone()[0]
    return began


def in_one_question(several: Sequence[QuerySet[Any]]) -> list[tuple[Any, ...]]:
    """Returns the values of all of them as the database has them. Each has its own order and bound, with
    which SQLite takes no part of a union of the ORM."""
    if not several:
        return []
    parts = [rows.query.sql_with_params() for rows in several]
    with connection.cursor() as cursor:
        cursor.execute(
            " UNION ALL ".join(f"SELECT * FROM ({sql}) AS part" for sql, _parameters in parts),
            [each for _sql, parameters in parts for each in parameters],
        )
        return list(cursor.fetchall())


# -- expressions ---------------------------------------------------------------------------------------------


def uuid_text(column: str) -> str:
    """Its canonical text: SQLite keeps 32 digits."""
    if connection.vendor != "sqlite":
        return f"CAST({column} AS text)"
    parts = ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12))
    return " || '-' || ".join(f"substr({column}, {first}, {length})" for first, length in parts)


def json_value(column: str, name: str, kind: str = "text") -> str:
    if connection.vendor == "sqlite":
        return f"json_extract({column}, '$.{name}')"
    return f"CAST({column} ->> '{name}' AS {kind})"


class JoinedTexts(Aggregate):
    """All texts of a group, with blanks between them."""

    template = "%(function)s(%(expressions)s, ' ')"
    output_field = TextField()
    function = "STRING_AGG"

    def as_sqlite(self, compiler: Any, connection: Any, **more: Any) -> tuple[str, Any]:
        return self.as_sql(compiler, connection, function="GROUP_CONCAT", **more)


# -- rows by where they lie in their table -------------------------------------------------------------------
# It finds and deletes them without an index, page after page. A place is no name: another row may lie there
# by the time. So what is deleted must fulfil the whole condition again.


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
