"""Making the index of properties over protocols that were there before it, while the site runs.

A row (`PropertyBackfill`) says how far it is; none is open where everything is in the index. Meanwhile a
property is looked for from the newest protocol on, as a text is. SQLite: pieces, each one transaction with
its position. PostgreSQL makes the whole index in one statement that locks nobody out; its own view says how
far. Killed, it leaves an index that is not valid: the next one drops it and begins again.
"""

from datetime import datetime

from django.db import connection, transaction

from failures.models import FailureProtocol, PropertyBackfill
from failures.protocols.properties import CREATED_POSTGRESQL, FILLED_SQLITE, INDEX, statement

PIECE = 1000
# Of an advisory lock: one makes the index.
LOCK = 0x70726F70


def is_complete() -> bool:
    """Returns whether the index has every protocol."""
    return not PropertyBackfill.objects.filter(open=True).exists()


def share() -> float | None:
    """Returns how much of it is done, from 0 to 1; None: all."""
    backfill = PropertyBackfill.objects.filter(open=True).first()
    if backfill is None:
        return None
    if connection.vendor == "postgresql":
        return _share_of_postgresql()
    # Ids are random, so a position says how many lie before it.
    return 0.0 if backfill.position is None else backfill.position.int / 2**128


def step(now: datetime) -> bool:
    """Does one piece; returns whether there may be more."""
    if is_complete():
        return False
    if connection.vendor == "postgresql":
        return _make_index(now)
    return _fill_piece(now)


@transaction.atomic
def _fill_piece(now: datetime) -> bool:
    """Two at a time take turns."""
    backfill = PropertyBackfill.objects.select_for_update().filter(open=True).first()
    if backfill is None:
        return False
    rows = FailureProtocol.objects.order_by("pk")
    rows = rows.filter(pk__gt=backfill.position) if backfill.position is not None else rows
    keys = list(rows.values_list("pk", flat=True)[:PIECE])
    if keys:
        after = backfill.position.hex if backfill.position is not None else ""
        with connection.cursor() as cursor:
            cursor.execute(statement(FILLED_SQLITE), [after, keys[-1].hex])
        backfill.position, backfill.rows = keys[-1], backfill.rows + len(keys)
    if len(keys) < PIECE:
        backfill.open, backfill.ended_at = False, now
    backfill.save()
    return backfill.open


def _make_index(now: datetime) -> bool:
    """In no transaction: no other way lets others write meanwhile."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [LOCK])
        if not cursor.fetchone()[0]:
            return False
        try:
            cursor.execute("SET statement_timeout = 0")
            cursor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {INDEX}")
            cursor.execute(statement(CREATED_POSTGRESQL, concurrently=True))
            PropertyBackfill.objects.filter(open=True).update(open=False, ended_at=now)
        finally:
            cursor.execute("RESET statement_timeout")
            cursor.execute("SELECT pg_advisory_unlock(%s)", [LOCK])
    return False


def _share_of_postgresql() -> float:
    """Of the table that it reads; reading it once more to be sure of it counts as done."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT blocks_done, blocks_total, phase FROM pg_stat_progress_create_index "
            "WHERE relid = %s::regclass",
            [FailureProtocol._meta.db_table],
        )
        row = cursor.fetchone()
    if row is None:
        return 0.0
    done, total, phase = row
    if not phase.startswith("building"):
        return 0.0 if phase == "initializing" or "before build" in phase else 1.0
    return done / total if total else 0.0
