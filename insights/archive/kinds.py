"""Describes what is archived: each kind by the statement that reads it. Apps above this one register their
own."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.db import connection
from django.db.models import Max, Min, QuerySet

from insights.archive.readiness import is_on
from insights.models.archive import IN_LINE, ArchiveBlock


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


_kinds: dict[str, ArchivedKind] = {}


def register_archived_kind(kind: ArchivedKind) -> None:
    _kinds[kind.name] = kind


def kinds() -> Mapping[str, ArchivedKind]:
    return _kinds


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


LONG_AGO = datetime(1, 1, 2, tzinfo=UTC)


def archived_before(kind: str, now: datetime) -> datetime | None:
    """Returns what was received before that is in settled blocks, all of it. None: the archive is off,
    nothing is kept for it."""
    if not is_on() or kind not in kinds():
        return None
    line = ArchiveBlock.objects.filter(IN_LINE, kind=kind).aggregate(first=Min("first"), last=Max("last"))
    if line["first"] is None:
        return LONG_AGO
    open_from = unsettled_blocks(kind).aggregate(first=Min("first"))["first"]
    before: datetime = line["last"] if open_from is None else min(open_from, line["last"])
    earliest = kinds()[kind].earliest()
    # Before the first block there may be rows of a clock that was set back.
    return LONG_AGO if earliest is not None and earliest < line["first"] else before


def unsettled_blocks(kind: str) -> QuerySet[ArchiveBlock]:
    """Returns those too that were read from the database again or add to others, until these are verified."""
    open_still = ArchiveBlock.objects.filter(kind=kind, settled_at=None)
    return open_still.exclude(late_of__isnull=False, verified_at__isnull=False)
