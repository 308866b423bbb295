"""Rows that many tests begin with: made once in a process, then written again as they were.

All instants move by the time that has passed since, so nobody is silent that was not silent then. Only on
SQLite, and in a transaction that the test rolls back: there numbers of rows begin again where they began.
"""

import io
import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, TypeVar

from django.apps import apps
from django.db import connection
from django.db.models import DateTimeField, Model
from django.utils import timezone

from dlq.models import DeadLetter
from dlq.search import word_index
from failures.models import FailureProtocol

Made = TypeVar("Made")
Row = tuple[Any, ...]
State = tuple[Row, ...]

# Columns with whole hours. They do not move.
OF_HOURS = "hour"


@dataclass(frozen=True)
class Kept:
    """`before`: the state of the database in which the rows fit."""

    before: State
    at: datetime
    made: bytes
    rows: dict[type[Model], list[Row]]
    letters: list[DeadLetter]
    words: list[list[str]]

    def fits(self, state: State, now: datetime) -> bool:
        """Failures are counted by hours: each one must still be in its own."""
        columns = _columns(FailureProtocol)
        instants = [
            value
            for row in self.rows.get(FailureProtocol, ())
            for (_, is_instant), value in zip(columns, row, strict=True)
            if is_instant and value is not None
        ]
        return state == self.before and all(
            _hour(each) == _hour(each + (now - self.at)) for each in [*instants, self.at.replace(tzinfo=None)]
        )

    def put(self, passed: timedelta) -> Any:
        for model, rows in self.rows.items():
            columns = _columns(model)
            names = ", ".join(f'"{name}"' for name, _ in columns)
            moving = [number for number, (_, is_instant) in enumerate(columns) if is_instant]
            with connection.cursor() as cursor:
                cursor.executemany(
                    f'INSERT OR REPLACE INTO "{model._meta.db_table}" ({names}) '
                    f"VALUES ({', '.join(['%s'] * len(columns))})",
                    [_moved(row, moving, passed) for row in rows],
                )
        word_index.add_words(self.letters, self.words)
        return _Loading(self.made, passed).load()


_known: dict[str, Kept] = {}


def kept(name: str, make: Callable[[], Made]) -> Made:
    """What `make` makes, with all rows that it stores. `name`: of what is made in the same way each time."""
    if connection.vendor != "sqlite" or not connection.in_atomic_block:
        return make()
    before, now = _state(), timezone.now()
    known = _known.get(name)
    if known is not None and known.fits(before, now):
        made: Made = known.put(now - known.at)
        return made
    rows = {model: {*_rows(model)} for model in _models()}
    indexed = [*DeadLetter.objects.values_list("pk", flat=True)]
    now = timezone.now()  # not sooner: what is nine minutes old in it must be so when it is written again
    made = make()
    added = {
        model: more for model in rows if (more := [row for row in _rows(model) if row not in rows[model]])
    }
    letters = [
        *DeadLetter.objects.exclude(pk__in=indexed).exclude(words_without="").select_related("content")
    ]
    _known[name] = Kept(before, now, _dumped(made), added, letters, word_index.prepare(letters))
    return made


@cache
def _models() -> list[type[Model]]:
    return [model for model in apps.get_models(include_auto_created=True) if model._meta.managed]


@cache
def _columns(model: type[Model]) -> list[tuple[str, bool]]:
    """By name, and whether it is an instant that moves."""
    return [
        (column, isinstance(field, DateTimeField) and column != OF_HOURS)
        for field in model._meta.concrete_fields
        if (column := field.column) and not field.generated
    ]


def _state() -> State:
    """The numbers that are next, how many rows there are, and the ids that are made by chance: rows below
    that were made again have others."""
    counts = " UNION ALL ".join(f"SELECT '{table}', count(*) FROM \"{table}\"" for table in _tables())
    with connection.cursor() as cursor:
        cursor.execute(f"{counts} UNION ALL SELECT name || ' next', seq FROM sqlite_sequence ORDER BY 1")
        found = tuple(cursor.fetchall())
        for table, key in _ids_by_chance():
            cursor.execute(f'SELECT "{key}" FROM "{table}" ORDER BY 1')
            found += tuple(cursor.fetchall())
    return found


@cache
def _ids_by_chance() -> list[tuple[str, str]]:
    keys = ((model._meta.db_table, model._meta.pk) for model in _models())
    return [
        (table, key.column) for table, key in keys if key is not None and key.column and key.has_default()
    ]


@cache
def _tables() -> list[str]:
    return [model._meta.db_table for model in _models()]


def _rows(model: type[Model]) -> list[Row]:
    """As SQLite keeps them, but for instants."""
    columns = _columns(model)
    names = ", ".join(f'"{name}"' for name, _ in columns)
    with connection.cursor() as cursor:
        cursor.execute(f'SELECT {names} FROM "{model._meta.db_table}"')
        found = cursor.fetchall()
    moving = [number for number, (_, is_instant) in enumerate(columns) if is_instant]
    return [_read(row, moving) for row in found]


def _read(row: Row, moving: Sequence[int]) -> Row:
    values = list(row)
    for number in moving:
        if values[number] is not None:
            values[number] = datetime.fromisoformat(str(values[number])).replace(tzinfo=None)
    return tuple(values)


def _moved(row: Row, moving: Sequence[int], passed: timedelta) -> Row:
    values = list(row)
    for number in moving:
        if values[number] is not None:
            values[number] = str(values[number] + passed)
    return tuple(values)


def _hour(at: datetime) -> datetime:
    return at.replace(minute=0, second=0, microsecond=0)


def _dumped(made: object) -> bytes:
    file = io.BytesIO()
    _Dumping(file, pickle.HIGHEST_PROTOCOL).dump(made)
    return file.getvalue()


class _Dumping(pickle.Pickler):
    def persistent_id(self, value: object) -> datetime | None:
        return value if type(value) is datetime and value.tzinfo is UTC else None


class _Loading(pickle.Unpickler):
    def __init__(self, made: bytes, passed: timedelta) -> None:
        super().__init__(io.BytesIO(made))
        self._passed = passed

    def persistent_load(self, at: datetime) -> datetime:
        return at + self._passed
