"""Describes a kind of what is archived, by the statement that reads it, and words of these statements that
differ from database to database."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.db import connection
from django.db.models import Min, QuerySet


@dataclass(frozen=True, slots=True)
class ArchivedKind:
    """`rows`: those that belong to it sooner or later, `received`: the field by which. `statement()`: SQL
    that answers the columns of `pipeline.schemas`. Where rows may change after they were archived it has
    `{first}` and `{last}`, and also answers those that were touched in that range; else the range is asked of
    the column `received`."""

    name: str
    rows: Callable[[], QuerySet[Any]]
    received: str
    statement: Callable[[], str]

    @property
    def ranged(self) -> bool:
        return "{first}" not in self.statement()

    def within(self, first: datetime, last: datetime) -> QuerySet[Any]:
        return self.rows().filter(**{f"{self.received}__gte": first, f"{self.received}__lt": last}).order_by()

    def count(self, first: datetime, last: datetime) -> int:
        """Counts what the statement answers for a range."""
        if self.ranged:
            return self.within(first, last).count()
        text = self.statement().replace("{first}", literal(first)).replace("{last}", literal(last))
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT COUNT(*) FROM ({text}) counted")
            return int(cursor.fetchone()[0])

    def earliest(self, first: datetime | None = None, last: datetime | None = None) -> datetime | None:
        rows = self.rows() if first is None or last is None else self.within(first, last)
        found: datetime | None = rows.order_by().aggregate(first=Min(self.received))["first"]
        return found


def iso(at: datetime) -> str:
    """Returns it as plans and manifests write it: the order of these texts is the order in time."""
    return at.astimezone(UTC).isoformat(timespec="microseconds")


# -- what both databases say in their own words --------------------------------------------------------------


def literal(at: datetime) -> str:
    plain = str(at.astimezone(UTC).replace(tzinfo=None))
    return f"'{plain}'" if connection.vendor == "sqlite" else f"TIMESTAMPTZ '{plain}+00'"


def uuid(column: str) -> str:
    """Its canonical text: SQLite keeps 32 digits."""
    if connection.vendor != "sqlite":
        return f"CAST({column} AS text)"
    parts = ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12))
    return " || '-' || ".join(f"substr({column}, {first}, {length})" for first, length in parts)


def json(column: str) -> str:
    return column if connection.vendor == "sqlite" else f"CAST({column} AS text)"


def json_value(column: str, name: str, kind: str = "text") -> str:
    if connection.vendor == "sqlite":
        return f"json_extract({column}, '$.{name}')"
    return f"CAST({column} ->> '{name}' AS {kind})"
