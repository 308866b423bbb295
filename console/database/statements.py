"""Estimates, and bounds on statements for somebody who waits."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
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
