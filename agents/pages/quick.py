"""Queries for somebody who waits."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection, transaction

# Milliseconds after which PostgreSQL gives a statement up.
PATIENCE = 5000


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
