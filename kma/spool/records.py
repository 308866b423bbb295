"""Records on their way to the MA. When `append` returns they are on disk; their numbers grow by one. What the
MA has taken is kept for a while (kma/spool/retained.py), within the same bound: it goes before what waits.

A record's id is stored once, also when its row was taken, refused or deleted meanwhile: a record made again
after a crash has no effect. `python -m kma.spool PATH` shows what a spool holds.
"""

import json
import sqlite3
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

from contract import reasons
from contract.messages import Record, SpoolReport
from contract.reasons import Reason
from contract.records import KIND_OF, Content
from contract.wire import dump
from kma.spool import retained
from kma.spool.file import (
    SELECT_OPEN,
    HandledKeys,
    HandledKeysUpdate,
    OpenRow,
    SpoolFile,
    note_handled,
    note_open,
)
from kma.spool.ledger import Progress, write_progress
from kma.spool.retained import WAITS

_TRIED_BYTES = 32 * 1024  # two hex digits each: as a failure with a long traceback
_FREED_AT_ONCE = 200  # delivered rows that go when the disk is full
_FORGET_TRIED = "DELETE FROM meta WHERE name = 'tried' AND ?1"


Size = tuple[int, int]  # rows and bytes
NOTHING: Size = (0, 0)


@dataclass(frozen=True, slots=True)
class New:
    """A record to be; `run` is the key of its run (`kma.spool.ledger.run_key`)."""

    run: str
    content: Content
    id: UUID


class Spool:
    """Safe between threads. Raises sqlite3.Error when the disk fails or is full: then nothing was stored.

    `keep_seconds`: how long what the MA has taken can be sent again.
    """

    def __init__(self, file: SpoolFile, limit_bytes: int, keep_seconds: float = 0.0) -> None:
        self._file = file
        self._limit = limit_bytes
        self._keep = keep_seconds
        self.handled_keys = HandledKeys(file)
        self._rows = self._bytes = self._kept_bytes = 0
        self._count()

    @property
    def id(self) -> UUID:
        return self._file.id

    @property
    def full(self) -> bool:
        """Nothing new may be begun. What is under way may still be stored: `append` never refuses for its
        bound."""
        return self._bytes >= self._limit or bool(self._file.problem)

    @property
    def crowded(self) -> bool:
        """More than a quarter of it waits for the MA: what can wait is not stored yet."""
        return self._bytes * 4 > self._limit

    @property
    def problem(self) -> Reason | None:
        """Why nothing new may be begun; None while it may."""
        if self._file.problem:
            return reasons.SPOOL_NOT_WRITTEN(detail=self._file.problem)
        return reasons.SPOOL_FULL() if self.full else None

    def try_again(self) -> None:
        """Looks whether the disk that took nothing takes something now: also when no run has anything to
        store."""
        if not self._file.problem:
            return
        with suppress(sqlite3.Error):
            self._make_room()
        with suppress(sqlite3.Error):
            for statement in (
                "INSERT OR REPLACE INTO meta VALUES ('tried', hex(zeroblob(?1)))",
                _FORGET_TRIED,
            ):
                with self._file.transaction() as connection:
                    connection.execute(statement, (_TRIED_BYTES,))

    def _make_room(self) -> None:
        """A file that may not grow has no room but its own."""
        with self._file.transaction() as connection:
            oldest = retained.oldest(connection)
            gone = retained.forget(connection, min(oldest + _FREED_AT_ONCE, retained.mark(connection)))
        self._changed(kept=gone, sign=-1)

    def append(
        self,
        records: Sequence[New],
        *,
        attempts: Iterable[tuple[str, str, int]] = (),
        forget: Iterable[tuple[str, str]] = (),
        progress: Progress | None = None,
        committing: Iterable[str] = (),
        handled: Iterable[HandledKeysUpdate] = (),
    ) -> None:
        """One transaction: the records in this order, known attempts (setting, message key, attempts made) to
        remember or to forget, how far the run has come with them, which open deliveries are to be committed
        next, and what was handled well, for the guard against repeats."""
        now = time.time()
        rows = [
            (str(new.id), KIND_OF[type(new.content)], new.run, _text(new.content), now) for new in records
        ]
        with self._file.transaction() as connection:
            sizes = [insert(connection, row) for row in rows]
            connection.executemany(
                "INSERT INTO attempts VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE"
                " SET made = max(made, excluded.made), seen_at = excluded.seen_at",
                [(*known, now) for known in attempts],
            )
            connection.executemany("DELETE FROM attempts WHERE setting = ? AND message = ?", list(forget))
            note_open(connection, records, committing)
            note_handled(connection, handled)
            if progress is not None:
                write_progress(connection, progress)
            stored = sum(size > 0 for size in sizes), sum(sizes)
            excess = self._bytes + self._kept_bytes + stored[1] - self._limit
            gone = retained.forget(connection, retained.for_room(connection, excess, self._limit))
        self._changed(waiting=stored)
        self._changed(kept=gone, sign=-1)

    def close_run(self, new: New) -> None:
        """The closing record and the mark that the run has one, together: there is never a second."""
        row = (str(new.id), KIND_OF[type(new.content)], new.run, _text(new.content), time.time())
        size = 0
        with self._file.transaction() as connection:
            marked = connection.execute("UPDATE runs SET closed = 1 WHERE run = ? AND NOT closed", (new.run,))
            if marked.rowcount == 1:
                size = insert(connection, row)
        self._changed(waiting=(int(size > 0), size))

    def knows(self, record: UUID) -> bool:
        """Whether a record of this id was stored, also if it was taken meanwhile."""
        with self._file.reading() as connection:
            return _is_known(connection, str(record))

    def head(self, records: int, size: int) -> list[Record]:
        """The oldest records that wait: at most so many, and so many bytes, but one at least when there is
        one."""
        with self._file.reading() as connection:
            cursor = connection.execute(
                f"SELECT number, id, kind, content, size FROM records WHERE {WAITS} ORDER BY number LIMIT ?",
                (records,),
            )
            batch: list[Record] = []
            for number, identity, kind, content, length in cursor:
                size -= length
                if batch and size < 0:
                    break
                batch.append(Record(number, UUID(identity), kind, json.loads(content)))
            cursor.close()
        return batch

    def taken(self, up_to: int) -> None:
        """The MA has stored every record up to this number."""
        gone = NOTHING
        with self._file.transaction() as connection:
            moved = _measure(connection, f"{WAITS} AND number <= ?", up_to)
            retained.note(connection, up_to, time.time())
            if not self._keep:
                gone = retained.forget(connection, retained.mark(connection))
        self._changed(waiting=moved, sign=-1)
        self._changed(kept=moved)
        self._changed(kept=gone, sign=-1)

    # -- what was taken --------------------------------------------------------------------------------------

    def delivered(self) -> int | None:
        """The highest number that the MA has stored, None where nothing of what it stored can be sent
        again."""
        with self._file.reading() as connection:
            return retained.resendable_mark(connection)

    def send_again(self, stored: int) -> int:
        """The MA has stored no more than this, whatever it said before: how many wait again now."""
        with self._file.transaction() as connection:
            mark = retained.mark(connection)
            to = max(stored, retained.oldest(connection) - 1)
            if to >= mark:
                return 0
            moved = _measure(connection, "number > ? AND number <= ?", to, mark)
            aside = retained.go_back(connection, to, time.time())
        self._changed(kept=moved, sign=-1)
        self._changed(waiting=moved)
        self._changed(waiting=aside)
        return moved[0] + aside[0]

    def forget_old(self) -> int:
        """What was taken long ago is not kept for ever: how many are gone, 0 when there are no more such."""
        with self._file.transaction() as connection:
            gone = retained.forget(connection, retained.old(connection, time.time() - self._keep))
        self._changed(kept=gone, sign=-1)
        return gone[0]

    # -- what is not taken -----------------------------------------------------------------------------------

    def put_aside(self, number: int, reason: str) -> None:
        """A record that the MA will never take blocks no other: kept for people, not sent again."""
        with self._file.transaction() as connection:
            put = _measure(connection, "number = ?", number)
            connection.execute(
                "INSERT OR IGNORE INTO set_aside SELECT number, id, kind, content, ? FROM records WHERE "
                "number = ?",
                (reason, number),
            )
            connection.execute("DELETE FROM records WHERE number = ?", (number,))
        self._changed(waiting=put, sign=-1)

    def put_last(self, number: int) -> int:
        """The number that this record has now, behind all others; 0 where it stays, because none that waits
        is at most half as large. One transaction: it is never there twice, nor not at all."""
        with self._file.transaction() as connection:
            row = connection.execute(
                "SELECT id, kind, run, content, size, created_at FROM records WHERE number = ?", (number,)
            ).fetchone()
            smaller = f"SELECT 1 FROM records WHERE {WAITS} AND size * 2 <= ? LIMIT 1"
            if row is None or not connection.execute(smaller, (row[4],)).fetchone():
                return 0
            connection.execute("DELETE FROM records WHERE number = ?", (number,))
            connection.execute(
                "INSERT INTO records (id, kind, run, content, size, created_at) VALUES (?, ?, ?, ?, ?, ?)",
                row,
            )
            return int(connection.execute("SELECT last_insert_rowid()").fetchone()[0])

    def set_aside(self) -> int:
        with self._file.reading() as connection:
            return int(connection.execute("SELECT count(*) FROM set_aside").fetchone()[0])

    def renew_id(self) -> UUID:
        """What was taken under the old identity must not be offered under the new one."""
        with self._file.transaction() as connection:
            mark = retained.mark(connection)
            gone = retained.forget(connection, mark)
            first = retained.oldest(connection) or mark + 1
        self._changed(kept=gone, sign=-1)
        return self._file.renew_id(first)

    @property
    def first(self) -> int:
        """The first number under its identity."""
        return self._file.first

    def last_number(self) -> int:
        """The highest number that a record ever got here."""
        with self._file.reading() as connection:
            row = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'records'").fetchone()
        return int(row[0]) if row else 0

    def report(self) -> SpoolReport:
        with self._file.reading() as connection:
            oldest = connection.execute(
                f"SELECT created_at FROM records WHERE {WAITS} ORDER BY number LIMIT 1"
            ).fetchone()
            oldest_at = datetime.fromtimestamp(oldest[0], UTC) if oldest else None
            return SpoolReport(
                self._rows, self._bytes, self._limit, self.full, oldest_at, self._file.id, self.delivered()
            )

    def attempts(self, setting: str) -> dict[str, int]:
        """Attempts that this server knows of, by message key."""
        with self._file.reading() as connection:
            return dict(
                connection.execute("SELECT message, made FROM attempts WHERE setting = ?", (setting,))
            )

    def open_acknowledgements(self) -> list[OpenRow]:
        """Deliveries that wait for an answer, by the records of this server."""
        with self._file.reading() as connection:
            return [OpenRow(*row) for row in connection.execute(SELECT_OPEN)]

    def _count(self) -> None:
        with self._file.reading() as connection:
            mark = retained.mark(connection)
            self._changed(waiting=_measure(connection, "number > ?", mark))
            self._changed(kept=_measure(connection, "number <= ?", mark))

    def _changed(self, *, waiting: Size = NOTHING, kept: Size = NOTHING, sign: int = 1) -> None:
        # After the commit only: a transaction that failed has changed nothing.
        with self._file.reading():
            self._rows += sign * waiting[0]
            self._bytes += sign * waiting[1]
            self._kept_bytes += sign * kept[1]


def _text(content: Content) -> str:
    return json.dumps(dump(content), ensure_ascii=False)


def insert(connection: sqlite3.Connection, row: tuple[str, str, str, str, float]) -> int:
    """Bytes that the row (id, kind, run, content, time) takes now, 0 when its id was here before."""
    identity, kind, run, content, now = row
    # Asked first: an insert that is ignored would still use up a number.
    if _is_known(connection, identity):
        return 0
    size = len(content.encode()) + retained.ROW_OVERHEAD
    connection.execute(
        "INSERT INTO records (id, kind, run, content, size, created_at) VALUES (?, ?, ?, ?, ?, ?)",
        (identity, kind, run, content, size, now),
    )
    connection.execute("UPDATE runs SET records = records + 1 WHERE run = ?", (run,))
    return size


def _is_known(connection: sqlite3.Connection, identity: str) -> bool:
    known = " UNION ALL ".join(
        f"SELECT 1 FROM {table} WHERE id = ?1" for table in ("records", "taken", "set_aside")
    )
    return connection.execute(known, (identity,)).fetchone() is not None


def _measure(connection: sqlite3.Connection, where: str, *numbers: int) -> Size:
    row = connection.execute(f"SELECT count(*), coalesce(sum(size), 0) FROM records WHERE {where}", numbers)
    rows, size = row.fetchone()
    return int(rows), int(size)
