"""Estimates, bounds on statements, and expressions that each database says in its own words."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from django.db import connection, transaction
from django.db.models import QuerySet

# Milliseconds after which PostgreSQL gives a statement up.
PATIENCE = 5000


def estimated_rows(rows: QuerySet[Any]) -> int | None:
    """Returns how many PostgreSQL expects from its statistics; SQLite keeps none."""
    if connection.vendor != "postgresql":
        return None
    plan = rows.order_by().explain(format="json")
    return int(json.loads(plan)[0]["Plan"]["Plan Rows"])


@contextmanager
def quick() -> Iterator[None]:
    """Bounds statements on PostgreSQL: indexes wherever there is one, for a guess that matches are everywhere
    is dear where they are not; and an end to every statement."""
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


def bound_lock_waits(milliseconds: int) -> None:
    """Waits no longer for a lock until the end of the transaction; SQLite does by the busy timeout of the
    connection."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL lock_timeout = {int(milliseconds)}")


def oldest_transaction() -> datetime | None:
    """Returns when the oldest one of others began that is not over on PostgreSQL. SQLite has one writer."""
    if connection.vendor != "postgresql":
        return None
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT min(xact_start) FROM pg_stat_activity WHERE datname = current_database() "
            "AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
        )
        began: datetime | None = cursor.fetchone()[0]
    return began


# -- expressions ---------------------------------------------------------------------------------------------


def uuid_text(column: str) -> str:
    """Its canonical text: SQLite keeps 32 digits."""
    if connection.vendor != "sqlite":
        return f"CAST({column} AS text)"
    parts = ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12))
    return " || '-' || ".join(f"substr({column}, {first}, {length})" for first, length in parts)


def json_value(column: str, name: str, kind: str = "text") -> str:
    if connection.vendor == "sqlite":
        return f"json_extract({column}, '$.{name}')"
    return f"CAST({column} ->> '{name}' AS {kind})"
