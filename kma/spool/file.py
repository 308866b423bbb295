"""The SQLite file behind spool and ledger, with the rows that go with a batch of records: WAL,
synchronous=FULL, so that a commit is on disk when it returns."""

import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import RLock
from typing import Protocol
from uuid import UUID, uuid4

from contract.records import AcknowledgementEnded, AcknowledgementOpened, Content

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


# -- rows that are written in the transaction of a batch -----------------------------------------------------
# Which deliveries of the mode CLIENT wait for an answer, and digests of keys of messages that were handled
# well, never the keys themselves.


SELECT_OPEN = "SELECT acknowledgement, run, committing FROM open_acknowledgements ORDER BY acknowledgement"


@dataclass(frozen=True, slots=True)
class OpenRow:
    """`run` is the key of its run. `committing`: its commit was to be carried out; whether it was, nobody
    noted."""

    acknowledgement: str
    run: str
    committing: int


class Spooled(Protocol):
    """A record to be; see kma.spool.records.New."""

    @property
    def run(self) -> str: ...

    @property
    def content(self) -> Content: ...


def note_open(connection: sqlite3.Connection, records: Sequence[Spooled], committing: Iterable[str]) -> None:
    """Within the transaction of the records."""
    for record in records:
        content = record.content
        if isinstance(content, AcknowledgementOpened):
            connection.execute(
                "INSERT OR IGNORE INTO open_acknowledgements (acknowledgement, run) VALUES (?, ?)",
                (content.acknowledgement, record.run),
            )
        elif isinstance(content, AcknowledgementEnded):
            connection.execute(
                "DELETE FROM open_acknowledgements WHERE acknowledgement = ?", (content.acknowledgement,)
            )
    connection.executemany(
        "UPDATE open_acknowledgements SET committing = 1 WHERE acknowledgement = ?",
        [(one,) for one in committing],
    )


@dataclass(frozen=True, slots=True)
class HandledKeysUpdate:
    """What a batch adds: digests of the setting's messages that were handled well, repeats that the run
    accepted. What is older than `window` seconds may go."""

    setting: str
    run: str
    window: float
    digests: tuple[bytes, ...] = ()
    repeats: int = 0


class HandledKeys:
    """Safe between threads."""

    def __init__(self, file: SpoolFile) -> None:
        self._file = file

    def knows(self, setting: str, digest: bytes, window: float) -> bool:
        """Whether it was handled well within the last `window` seconds."""
        with self._file.reading() as connection:
            found = connection.execute(
                "SELECT 1 FROM handled_keys WHERE setting = ? AND digest = ? AND at > ?",
                (setting, digest, time.time() - window),
            ).fetchone()
        return found is not None

    def repeats(self, run: str) -> int:
        with self._file.reading() as connection:
            row = connection.execute("SELECT number FROM repeats WHERE run = ?", (run,)).fetchone()
        return int(row[0]) if row else 0


def note_handled(connection: sqlite3.Connection, handled: Iterable[HandledKeysUpdate]) -> None:
    """Within the transaction of the batch. A few old ones go with each new one, so that no batch takes
    long."""
    now = time.time()
    for each in handled:
        connection.executemany(
            "INSERT INTO handled_keys VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET at = excluded.at",
            [(each.setting, digest, now) for digest in each.digests],
        )
        if each.repeats:
            connection.execute(
                "INSERT INTO repeats VALUES (?, ?) ON CONFLICT DO UPDATE SET number = number + "
                "excluded.number",
                (each.run, each.repeats),
            )
        connection.execute(
            "DELETE FROM handled_keys WHERE setting = ?1 AND digest IN"
            " (SELECT digest FROM handled_keys WHERE setting = ?1 AND at <= ?2 ORDER BY at LIMIT ?3)",
            (each.setting, now - each.window, 10 + 2 * len(each.digests)),
        )
    connection.execute("DELETE FROM repeats WHERE run NOT IN (SELECT run FROM runs)")
