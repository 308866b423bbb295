"""What the MA has taken stays in the spool for a while: a database that was put back from a copy asks for it
again.

Rows up to the mark are delivered, above it they wait. All functions work within the caller's transaction.
"""

import sqlite3

WAITS = "number > (SELECT coalesce(max(number), 0) FROM delivered)"  # of a row of `records`
ROW_OVERHEAD = 100  # bytes that a row costs beside its content, about
SLOT = 600  # seconds: how finely it is noted when what was delivered
KEEP_IDS = 20_000  # remembered after their rows are gone
# Rows go a few at a time: who has a failure to store waits meanwhile.
SLACK = 512  # one part of so many of the bound goes beyond what must, so that room is not made for each row
MOST = 500  # rows that go at once for their age


def mark(connection: sqlite3.Connection) -> int:
    """The highest number that the MA has stored, as far as it said."""
    row = connection.execute("SELECT coalesce(max(number), 0) FROM delivered").fetchone()
    return int(row[0])


def resendable_mark(connection: sqlite3.Connection) -> int | None:
    """The mark, where something up to it can be sent again."""
    number = mark(connection)
    found = connection.execute("SELECT 1 FROM records WHERE number <= ? LIMIT 1", (number,)).fetchone()
    return number if found else None


def oldest(connection: sqlite3.Connection) -> int:
    """The lowest number that is here, 0 where nothing is."""
    return int(connection.execute("SELECT coalesce(min(number), 0) FROM records").fetchone()[0])


def note(connection: sqlite3.Connection, up_to: int, now: float) -> None:
    """The MA has stored everything up to this number. It never goes back: see `go_back`."""
    if up_to > mark(connection):
        connection.execute("INSERT OR REPLACE INTO delivered VALUES (?, ?)", (int(now // SLOT), up_to))


def go_back(connection: sqlite3.Connection, to: int, now: float) -> tuple[int, int]:
    """What is above waits again, also what the MA refused: it knows nothing of that now. (rows, bytes) of
    these."""
    connection.execute("DELETE FROM delivered WHERE number > ?", (to,))
    note(connection, to, now)
    again = connection.execute(
        f"SELECT number, id, kind, '', content, length(CAST(content AS BLOB)) + {ROW_OVERHEAD}, ? FROM "
        f"set_aside"
        " WHERE number > ? ORDER BY number",
        (now, to),
    ).fetchall()
    connection.execute("DELETE FROM set_aside WHERE number > ?", (to,))
    rows = size = 0
    for row in again:
        # One id may have been refused twice under two numbers.
        if connection.execute("INSERT OR IGNORE INTO records VALUES (?, ?, ?, ?, ?, ?, ?)", row).rowcount:
            rows, size = rows + 1, size + row[5]
    return rows, size


def old(connection: sqlite3.Connection, before: float) -> int:
    """Everything up to this number was delivered before this instant; 0 for none. At most MOST rows of it."""
    row = connection.execute(
        "SELECT max(number) FROM delivered WHERE slot < ?", (int(before // SLOT),)
    ).fetchone()
    if row[0] is None:
        return 0
    some = "SELECT max(number) FROM (SELECT number FROM records WHERE number <= ? ORDER BY number LIMIT ?)"
    return int(connection.execute(some, (row[0], MOST)).fetchone()[0] or 0)


def for_room(connection: sqlite3.Connection, size: int, limit: int) -> int:
    """The number up to which delivered rows must go, so that `size` bytes are free, and some more; 0 for
    none."""
    if size <= 0:
        return 0
    size += limit // SLACK
    number = 0
    rows = connection.execute(
        "SELECT number, size FROM records WHERE number <= ? ORDER BY number", (mark(connection),)
    )
    for number, length in rows:  # noqa: B007  # the last one is what is asked for
        size -= length
        if size <= 0:
            break
    rows.close()
    return number


def forget(connection: sqlite3.Connection, up_to: int) -> tuple[int, int]:
    """(rows, bytes) that are gone: delivered ones, of which the ids stay for a while."""
    if up_to <= 0:
        return 0, 0
    gone = connection.execute("SELECT number, id, size FROM records WHERE number <= ?", (up_to,)).fetchall()
    # First, so that the ids find their room on a disk that has none.
    connection.execute("DELETE FROM records WHERE number <= ?", (up_to,))
    connection.executemany("INSERT OR IGNORE INTO taken VALUES (?, ?)", [row[:2] for row in gone])
    connection.execute("DELETE FROM taken WHERE number <= (SELECT max(number) FROM taken) - ?", (KEEP_IDS,))
    # The newest is the mark.
    connection.execute(
        "DELETE FROM delivered WHERE number <= ? AND number < (SELECT max(number) FROM delivered)", (up_to,)
    )
    return len(gone), sum(row[2] for row in gone)
