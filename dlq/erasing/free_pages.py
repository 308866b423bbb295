"""What SQLite keeps of rows that were changed or deleted: pages that nothing refers to, and the log before
them."""

from django.db import connection

from dlq.search import forgetting


def write_over() -> None:
    """From here on this connection writes zeros over what it takes away."""
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA secure_delete = ON")


def empty_the_log() -> None:
    """Until then the log holds pages as they were. Where somebody reads at this moment SQLite does it
    later."""
    if connection.vendor != "sqlite":
        return
    forgetting.merge()
    if not connection.in_atomic_block:
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
