"""SQLite moves what was committed from its log into the file after the commit that makes the log long, while
nobody is kept waiting but who committed. Here it is done between chunks: so how long one took is how long it
held the lock."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection


@contextmanager
def apart() -> Iterator[None]:
    """No commit of this connection does it while this is entered."""
    if connection.vendor != "sqlite":
        yield
        return
    before = _pragma("wal_autocheckpoint")
    _pragma("wal_autocheckpoint=0")
    try:
        yield
    finally:
        _pragma(f"wal_autocheckpoint={before}")


def move_on() -> None:
    """As far as those who read allow."""
    if not connection.in_atomic_block:
        _pragma("wal_checkpoint(PASSIVE)")


def _pragma(words: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(f"PRAGMA {words}")
        return int(cursor.fetchone()[0])
