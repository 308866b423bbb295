"""How texts are found: by a part of them, whatever the case of any script."""

from typing import Any

from django.db.backends.signals import connection_created
from django.db.models import CharField, TextField
from django.db.models.lookups import IContains

# -- `icontains`: SQLite's LIKE knows the case of ASCII only, PostgreSQL's of all ----------------------------


_FUNCTION = "ma_has_part"


class HasPart(IContains):
    def as_sqlite(self, compiler: Any, connection: Any) -> tuple[str, list[Any]]:
        if not self.rhs_is_direct_value():
            sql, params = self.as_sql(compiler, connection)
            return sql, list(params)
        text, params = self.process_lhs(compiler, connection)
        return f"{_FUNCTION}({text}, %s)", [*params, str(self.rhs).casefold()]


def has_part(text: str | None, part: str) -> bool | None:
    """`part` is folded already. None where there is no text."""
    return None if text is None else part in str(text).casefold()


def _connected(connection: Any, **_signal: Any) -> None:
    if connection.vendor == "sqlite":
        connection.connection.create_function(_FUNCTION, 2, has_part, deterministic=True)


def register_has_part() -> None:
    for each in (CharField, TextField):
        each.register_lookup(HasPart)
    connection_created.connect(_connected, dispatch_uid=_FUNCTION)
