"""What depends on the database: a lookup for many values, queries for somebody who waits."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection, transaction
from django.db.models import Field, Lookup, UUIDField

# Milliseconds after which PostgreSQL gives a statement up.
PATIENCE = 5000


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
        """As the column holds them: SQLite has no UUIDs."""
        field = self.lhs.output_field
        if not isinstance(field, UUIDField):
            return list(self.rhs)
        return [field.get_db_prep_value(value, connection) for value in self.rhs]


def register_lookups() -> None:
    Field.register_lookup(Among)


@contextmanager
def quick() -> Iterator[None]:
    """On PostgreSQL: indexes wherever there is one, for a guess that matches are everywhere is dear where
    they are not; and an end to every statement."""
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
