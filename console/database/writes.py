"""How several processes write side by side, and what stays on the disk of what they delete.

SQLite has one writer at a time. PostgreSQL writes beside all others, who wait only for rows that they share.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from django.db import connection
from django.db.models import QuerySet

from console.jobs import crash

# -- how long a transaction may write ------------------------------------------------------------------------


# Where it keeps every writer waiting, at most 50 ms: half of it, because none is like the one before.
SHARED_SECONDS = 0.025
# Where it locks only rows that nobody else writes: so long that its commit is a small part of it, so short
# that the disk has not much to do at once.
ALONE_SECONDS = 0.1
# On PostgreSQL the disk is shared: what others commit waits for what a transaction has written. A pause is so
# much of the time that this took.
SHARE_OF_OTHERS = 0.35


def seconds_alone() -> float:
    """Returns how long a transaction may write rows that nobody else writes."""
    return SHARED_SECONDS if connection.vendor == "sqlite" else ALONE_SECONDS


def let_others_write(took: float = 0.0) -> None:
    """Pauses after a transaction of so many seconds. Those who wait for SQLite look again only every few
    milliseconds."""
    pause = min(0.1, max(0.01, took)) if connection.vendor == "sqlite" else took * SHARE_OF_OTHERS
    time.sleep(pause)


# -- the log of SQLite: PostgreSQL has processes of its own for it -------------------------------------------
# SQLite moves what was committed from its log into the file after the commit that makes the log long, while
# nobody is kept waiting but who committed. Where that is done apart, a transaction takes as long as it holds
# the lock.


@contextmanager
def checkpoints_apart() -> Iterator[None]:
    """Lets no commit of this connection do it while this is entered."""
    if connection.vendor != "sqlite":
        yield
        return
    before = _pragma("wal_autocheckpoint")
    _pragma("wal_autocheckpoint=0")
    try:
        yield
    finally:
        _pragma(f"wal_autocheckpoint={before}")


def checkpoint(*, emptied: bool = False) -> None:
    """Moves it on as far as those who read allow; `emptied`: until then the log holds pages as they were.
    Inside a transaction it does nothing."""
    if connection.vendor == "sqlite" and not connection.in_atomic_block:
        _pragma(f"wal_checkpoint({'TRUNCATE' if emptied else 'PASSIVE'})")


def _pragma(words: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(f"PRAGMA {words}")
        return int(cursor.fetchone()[0])


# -- what is deleted -----------------------------------------------------------------------------------------


def overwrite_deleted() -> None:
    """Makes this connection write zeros over what it deletes from here on."""
    if connection.vendor == "sqlite":
        _pragma("secure_delete = ON")


def raw_delete(rows: QuerySet[Any]) -> int:
    """Deletes without the ORM's collector, which reads all that it deletes, and returns how many."""
    # Of none it answers None.
    return rows.order_by()._raw_delete(rows.db) or 0


def shrink(rows: QuerySet[Any], known: Sequence[Any], **values: Any) -> None:
    """Sets these values, which make the rows smaller; `known`: the same rows with what they hold besides.

    SQLite joins the pages of rows that are deleted; one that an UPDATE has made smaller keeps its page for
    itself: what is stored later does not fit in. So there they are written again."""
    rewritten = connection.vendor == "sqlite"
    if rewritten:
        raw_delete(rows)
    crash.point("shrink: rows taken out")
    if not rewritten:
        rows.update(**values)
        return
    for each in known:
        vars(each).update(values)
    rows.model._default_manager.bulk_create(known)
