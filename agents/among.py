"""`column__among=values`: as `__in`, for hundreds of values at a time. One parameter, where the ORM prepares
and quotes each value by itself."""

import json
from typing import Any

from django.db.models import Field, Lookup, UUIDField


class Among(Lookup):
    """Of texts, whole numbers and UUIDs."""

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


def register() -> None:
    Field.register_lookup(Among)
