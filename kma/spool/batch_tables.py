"""Rows of the spool's file that are written in the transaction of a batch: which deliveries of the mode
CLIENT wait for an answer, and digests of keys of messages that were handled well, never the keys themselves.
"""

import sqlite3
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from contract.records import AcknowledgementEnded, AcknowledgementOpened, Content
from kma.spool.file import SpoolFile

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
