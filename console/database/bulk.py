"""Many values in one statement, and many rows at once."""

import json
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from operator import attrgetter
from typing import Any

from django.db import connection, models
from django.db.models import Field, Lookup, UUIDField


class Among(Lookup):
    """`column__among=values`: as `__in`, for hundreds of values at a time: texts, whole numbers or UUIDs. One
    parameter, where the ORM prepares and quotes each value by itself."""

    lookup_name = "among"
    prepare_rhs = False

    def as_sqlite(self, compiler: Any, connection: Any) -> tuple[str, list[Any]]:
        left, parameters = self.process_lhs(compiler, connection)
        return f"{left} IN (SELECT value FROM json_each(%s))", [
            *parameters,
            json.dumps(self._values(connection)),
        ]

    def as_postgresql(self, compiler: Any, connection: Any) -> tuple[str, list[Any]]:
        left, parameters = self.process_lhs(compiler, connection)
        return f"{left} = ANY(%s)", [*parameters, self._values(connection)]

    def _values(self, connection: Any) -> list[Any]:
        """Returns them as the column holds them: SQLite has no UUIDs."""
        field = self.lhs.output_field
        if not isinstance(field, UUIDField):
            return list(self.rhs)
        return [field.get_db_prep_value(value, connection) for value in self.rhs]


def register_lookups() -> None:
    Field.register_lookup(Among)


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


# What the driver does not take as it is. Everything else goes as the row holds it.
_PREPARED = (models.JSONField, models.UUIDField, models.DateTimeField)


def insert_rows(rows: Sequence[models.Model]) -> None:
    """Raises what the database says, as Django's errors; then the transaction is spoilt."""
    if not rows:
        return
    model = type(rows[0])
    values = _values(model)
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            # The cursor's own `copy` is the driver's: without this its errors would not be Django's.
            with connection.wrap_database_errors, cursor.copy(_copy(model)) as copy:
                for row in rows:
                    copy.write_row(values(row))
        else:
            cursor.executemany(_statement(model), [values(row) for row in rows])


@cache
def _fields(model: type[models.Model]) -> list[Any]:
    """A key that the database counts up is left to it."""
    return [field for field in model._meta.concrete_fields if not isinstance(field, models.AutoField)]


@cache
def _values(model: type[models.Model]) -> Callable[[Any], list[Any]]:
    fields = _fields(model)
    get = attrgetter(*(field.attname for field in fields))
    native = connection.vendor == "postgresql"
    prepared = [
        (index, field)
        for index, field in enumerate(fields)
        if isinstance(
            field.target_field if field.is_relation else field, models.JSONField if native else _PREPARED
        )
    ]

    def values(row: Any) -> list[Any]:
        found = list(get(row))
        for index, field in prepared:
            found[index] = field.get_db_prep_save(found[index], connection)
        return found

    return values


def _columns(model: type[models.Model]) -> str:
    return ", ".join(connection.ops.quote_name(field.column) for field in _fields(model))


@cache
def _copy(model: type[models.Model]) -> str:
    return f"COPY {connection.ops.quote_name(model._meta.db_table)} ({_columns(model)}) FROM STDIN"


@cache
def _statement(model: type[models.Model]) -> str:
    marks = ", ".join(["%s"] * len(_fields(model)))
    table = connection.ops.quote_name(model._meta.db_table)
    return f"INSERT INTO {table} ({_columns(model)}) VALUES ({marks})"
