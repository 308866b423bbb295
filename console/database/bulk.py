"""Many values in one statement, and many rows at once."""

import json
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import cache, lru_cache, partial
from operator import attrgetter
from typing import Any

from django.db import connection, models
from django.db.models import Lookup, UUIDField


class Among(Lookup):
    """`column__among=values`: as `__in`, for hundreds of values at a time: texts, whole numbers or UUIDs. One
    parameter, where the ORM prepares and quotes each value by itself."""

    lookup_name = "among"
    prepare_rhs = False

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, Any]:
        left, parameters = self.process_lhs(compiler, connection)
        condition, values = among(left, self.rhs, self.lhs.output_field)
        return condition, [*parameters, values]


def among(column: str, values: Iterable[Any], field: Any) -> tuple[str, Any]:
    """Returns the same as SQL with one parameter, and this."""
    if isinstance(field, UUIDField):  # SQLite has none
        values = [field.get_db_prep_value(value, connection) for value in values]
    if connection.vendor == "postgresql":
        return f"{column} = ANY(%s)", list(values)
    return f"{column} IN (SELECT value FROM json_each(%s))", json.dumps(list(values))


# -- rows as a table within a statement ----------------------------------------------------------------------
# One parameter, or one for each column: thousands of them would take longer to put into the statement than
# the database takes to answer it.


# Types of columns.
WHOLE, INSTANT = "bigint", "timestamptz"


def values_table(name: str, columns: dict[str, str], rows: Iterable[Sequence[Any]]) -> tuple[str, list[Any]]:
    """`name(column, …) AS (…)` for a WITH, and its parameters. `columns`: the type of each; values as the
    database has them."""
    table = list(rows)
    parameters: list[Any]
    if connection.vendor == "sqlite":
        each = ", ".join(f"json_extract(value, '$[{place}]')" for place in range(len(columns)))
        source, parameters = f"{each} FROM json_each(%s)", [json.dumps(table)]
    else:
        source = f"* FROM unnest({', '.join(f'%s::{kind}[]' for kind in columns.values())})"
        parameters = [[row[place] for row in table] for place in range(len(columns))]
    return f"{name}({', '.join(columns)}) AS (SELECT {source})", parameters


# -- bulk insert: COPY on PostgreSQL, one prepared INSERT on SQLite ------------------------------------------
# The rows are made by us, so each value has the type of its field already; nothing is read back.


def insert_rows(rows: Sequence[models.Model]) -> None:
    """A key that the database counts up is left to it where the first row has none. Raises what the database
    says, as Django's errors; then the transaction is spoilt."""
    if rows:
        columns, values = _columns(type(rows[0]), rows[0].pk is not None)
        insert_values(rows[0]._meta.db_table, columns, map(values, rows))


def insert_values(table: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """The same of values as the driver takes them."""
    into = f"{connection.ops.quote_name(table)} ({', '.join(map(connection.ops.quote_name, columns))})"
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            # The cursor's own `copy` is the driver's: without this its errors would not be Django's.
            with connection.wrap_database_errors, cursor.copy(f"COPY {into} FROM STDIN") as copy:
                for row in rows:
                    copy.write_row(row)
        else:
            cursor.executemany(f"INSERT INTO {into} VALUES ({', '.join(['%s'] * len(columns))})", list(rows))


def reserve_numbers(model: type[models.Model], count: int) -> Sequence[int]:
    """Returns so many keys that no row has or will get, ascending. Call it in the transaction that uses
    them."""
    table = model._meta.db_table
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            sequence = f"pg_get_serial_sequence('{table}', 'id')"
            cursor.execute(f"SELECT nextval({sequence}) FROM generate_series(1, %s)", [count])
            return sorted(number for (number,) in cursor.fetchall())
        # The transaction has the only write lock (IMMEDIATE), so the numbers that follow are ours.
        cursor.execute("SELECT seq FROM sqlite_sequence WHERE name = %s", [table])
        last = next(iter(cursor.fetchall()), (0,))[0]
        return range(last + 1, last + 1 + count)


@cache
def _columns(model: type[models.Model], numbered: bool) -> tuple[list[str], Callable[[Any], list[Any]]]:
    """Returns the columns of its rows, and what gives the values of one."""
    fields: list[Any] = [
        field for field in model._meta.concrete_fields if numbered or not isinstance(field, models.AutoField)
    ]
    get = attrgetter(*(field.attname for field in fields))
    adapters = [
        (place, adapter)
        for place, field in enumerate(fields)
        if (adapter := _adapter(field.target_field if field.is_relation else field))
    ]

    def values(row: Any) -> list[Any]:
        found = list(get(row))
        for place, adapter in adapters:
            if found[place] is not None:
                found[place] = adapter(found[place])
        return found

    return [field.column for field in fields], values


def _adapter(field: Any) -> Callable[[Any], Any] | None:
    """Makes of a value what the driver takes; None: it takes the value as it is."""
    if isinstance(field, models.JSONField):
        return partial(field.get_db_prep_save, connection=connection)
    if connection.vendor == "postgresql":
        return None
    if isinstance(field, models.UUIDField):
        return attrgetter("hex")
    return _plain_instant if isinstance(field, models.DateTimeField) else None


@lru_cache(1024)
def _plain_instant(at: datetime) -> str | None:
    """Most instants of many rows are the same few."""
    return connection.ops.adapt_datetimefield_value(at)
