"""The SQLite file behind spool and ledger: WAL, synchronous=FULL, so that a commit is on disk when it
returns."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from uuid import UUID, uuid4

_SCHEMA = """
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS records (
    number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, run TEXT NOT NULL,
    content TEXT NOT NULL, size INTEGER NOT NULL, created_at REAL NOT NULL);
CREATE TABLE IF NOT EXISTS delivered (slot INTEGER PRIMARY KEY, number INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS taken (number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE);
CREATE TABLE IF NOT EXISTS set_aside (
    number INTEGER PRIMARY KEY, id TEXT NOT NULL, kind TEXT NOT NULL, content TEXT NOT NULL,
    reason TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS set_aside_by_id ON set_aside (id);
CREATE TABLE IF NOT EXISTS runs (
    run TEXT PRIMARY KEY, about TEXT NOT NULL, records INTEGER NOT NULL DEFAULT 0,
    totals TEXT NOT NULL DEFAULT '{}',
    closed INTEGER NOT NULL DEFAULT 0, seen_at REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS interrupted (run TEXT PRIMARY KEY, reason TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS settings (setting TEXT PRIMARY KEY, state TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS attempts (
    setting TEXT NOT NULL, message TEXT NOT NULL, made INTEGER NOT NULL, seen_at REAL NOT NULL,
    PRIMARY KEY (setting, message)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS open_acknowledgements (
    acknowledgement TEXT PRIMARY KEY, run TEXT NOT NULL, committing INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS handled_keys (
    setting TEXT NOT NULL, digest BLOB NOT NULL, at REAL NOT NULL, PRIMARY KEY (setting,
    digest)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS handled_keys_by_age ON handled_keys (setting, at);
CREATE TABLE IF NOT EXISTS repeats (run TEXT PRIMARY KEY, number INTEGER NOT NULL) WITHOUT ROWID;
"""


class SpoolFile:
    """One connection for all threads of the one process that writes. Every sqlite3.Error means: nothing was
    stored."""

    def __init__(self, path: Path) -> None:
        self._lock = RLock()
        self._connection = sqlite3.connect(path, check_same_thread=False, isolation_level=None, timeout=30)
        path.chmod(0o600)
        for pragma in ("journal_mode=WAL", "synchronous=FULL"):
            self._connection.execute(f"PRAGMA {pragma}").fetchall()
        self._connection.executescript(_SCHEMA)
        self._connection.execute("INSERT OR IGNORE INTO meta VALUES ('spool', ?)", (str(uuid4()),))
        self.problem = ""  # of the disk, since the last transaction that it took

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """All or nothing; on disk after the block."""
        with self._lock:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
                self.problem = ""
            except BaseException as error:
                if isinstance(error, sqlite3.OperationalError):
                    self.problem = str(error)
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            yield self._connection

    @property
    def id(self) -> UUID:
        with self.reading() as connection:
            return UUID(connection.execute("SELECT value FROM meta WHERE name = 'spool'").fetchone()[0])

    def renew_id(self, first: int) -> UUID:
        """A new identity, for a file that was put back from a copy: the MA has seen higher numbers of the old
        one. `first`: its first number."""
        new = uuid4()
        with self.transaction() as connection:
            connection.execute("UPDATE meta SET value = ? WHERE name = 'spool'", (str(new),))
            connection.execute("INSERT OR REPLACE INTO meta VALUES ('first', ?)", (str(first),))
        return new

    @property
    def first(self) -> int:
        """The first number under this identity."""
        with self.reading() as connection:
            row = connection.execute("SELECT value FROM meta WHERE name = 'first'").fetchone()
        return int(row[0]) if row else 1

    def close(self) -> None:
        with self._lock:
            self._connection.close()
