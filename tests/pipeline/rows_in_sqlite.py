"""A database with the columns of the archive's kinds, without the MA: what the archive does with rows, not
whose."""

import sqlite3
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pipeline.archive.reading import iso
from pipeline.archive.source import Source
from pipeline.schemas import KINDS

NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)


class Database:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.connection = sqlite3.connect(path, isolation_level=None)
        self.connection.execute("PRAGMA journal_mode=WAL")
        for kind in KINDS.values():
            self.connection.execute(f"CREATE TABLE {kind.name} ({', '.join(_quoted(kind.schema.names))})")

    def add(self, kind: str, **values: Any) -> None:
        stored = {name: _stored(value) for name, value in values.items()}
        marks = ", ".join("?" * len(stored))
        self.connection.execute(
            f"INSERT INTO {kind} ({', '.join(_quoted(stored))}) VALUES ({marks})", list(stored.values())
        )

    def add_protocol(self, id: str, received_at: datetime, **values: Any) -> None:
        known = {"id": id, "received_at": received_at, "occurred_at": received_at, "setting_key": "orders"}
        self.add("protocols", **{**known, "traceback": "T" * 50, "temporary": False, "attempt": 1, **values})

    def run(self, statement: str, *values: Any) -> None:
        self.connection.execute(statement, values)

    @property
    def source(self) -> Source:
        statements = {
            name: f"SELECT {', '.join(_quoted(kind.schema.names))} FROM {name}"
            for name, kind in KINDS.items()
        }
        return Source("sqlite", f"jdbc:sqlite:{self.path}?open_mode=1", statements)


def block(
    number: int, first: datetime, last: datetime, kind: str = "protocols", **more: Any
) -> Mapping[str, Any]:
    return {
        "kind": kind, "number": number, "day": first.date().isoformat(), "first": iso(first),
        "last": iso(last),
        "splits": [], "late_of": None, "replaces": [], **more,
    }  # fmt: skip


def minutes(count: float) -> timedelta:
    return timedelta(minutes=count)


def _stored(value: Any) -> Any:
    """As Django writes it into SQLite."""
    return str(value.astimezone(UTC).replace(tzinfo=None)) if isinstance(value, datetime) else value


def _quoted(names: Any) -> list[str]:
    return [f'"{name}"' for name in names]
