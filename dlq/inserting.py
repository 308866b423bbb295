"""Writing many new letters at once: three times as fast as the ORM's own way, which asks every field of every
row."""

import json
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from operator import attrgetter
from typing import Any

from django.db import connection, models

from dlq.models import DeadLetter, LetterContent
from dlq.models.content import content_of


class _Table:
    """How rows of a model become values of its columns."""

    def __init__(self, model: type[models.Model]) -> None:
        fields = model._meta.concrete_fields
        self.name = model._meta.db_table
        self.columns = ", ".join(f'"{field.column}"' for field in fields)
        self.marks = ", ".join(["%s"] * len(fields))
        self._values_of = attrgetter(*(field.attname for field in fields))

        def places(kind: type[Any]) -> tuple[int, ...]:
            return tuple(place for place, field in enumerate(fields) if isinstance(field, kind))

        self._json, self._instants = places(models.JSONField), places(models.DateTimeField)
        self._uuids = places(models.UUIDField)

    def plain(self, rows: Iterable[models.Model]) -> Iterator[list[Any]]:
        for row in rows:
            values = list(self._values_of(row))
            for place in self._json:
                values[place] = json.dumps(values[place])
            yield values

    def for_sqlite(self, rows: Iterable[models.Model]) -> Iterator[list[Any]]:
        """Instants and UUIDs as Django reads them there."""
        adapt = cache(connection.ops.adapt_datetimefield_value)  # most of them are of the same moment
        for values in self.plain(rows):
            for place in self._instants:
                if values[place] is not None:
                    values[place] = adapt(values[place])
            for place in self._uuids:
                if values[place] is not None:
                    values[place] = values[place].hex
            yield values


_LETTERS, _CONTENTS = _Table(DeadLetter), _Table(LetterContent)


def insert(rows: Sequence[DeadLetter]) -> None:
    """Stores unsaved rows and gives each its pk, growing in their order. Call it in a transaction.

    Raises IntegrityError when one of them is stored already, DataError for a value that its column does not
    take; then nothing of them is stored once the transaction ends.
    """
    if not rows:
        return
    contents = [content_of(row) for row in rows]
    write = _insert_sqlite if connection.vendor == "sqlite" else _insert_postgresql
    write(rows, contents)
    for row in (*rows, *contents):
        row._state.adding, row._state.db = False, connection.alias


def _insert_sqlite(rows: Sequence[DeadLetter], contents: Sequence[LetterContent]) -> None:
    """The transaction has the only write lock (IMMEDIATE), so the numbers that follow are ours."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT seq FROM sqlite_sequence WHERE name = %s", [_LETTERS.name])
        found = cursor.fetchone()
        first = 1 + (found[0] if found else 0)
        _number(rows, contents, range(first, first + len(rows)))
        for table, some in ((_LETTERS, rows), (_CONTENTS, contents)):
            values: Any = table.for_sqlite(some)
            cursor.executemany(f"INSERT INTO {table.name} ({table.columns}) VALUES ({table.marks})", values)


def _insert_postgresql(rows: Sequence[DeadLetter], contents: Sequence[LetterContent]) -> None:
    with connection.cursor() as cursor:
        sequence = f"pg_get_serial_sequence('{_LETTERS.name}', 'id')"
        cursor.execute(f"SELECT nextval({sequence}) FROM generate_series(1, %s)", [len(rows)])
        _number(rows, contents, sorted(number for (number,) in cursor.fetchall()))
        copying: Any = cursor.cursor
        for table, some in ((_LETTERS, rows), (_CONTENTS, contents)):
            into = f"COPY {table.name} ({table.columns}) FROM STDIN"
            with connection.wrap_database_errors, copying.copy(into) as copy:
                for values in table.plain(some):
                    copy.write_row(values)


def _number(rows: Sequence[DeadLetter], contents: Sequence[LetterContent], numbers: Sequence[int]) -> None:
    for row, content, number in zip(rows, contents, numbers, strict=True):
        row.pk = content.letter_id = number
