"""What was handled well lately, by setting, in the spool's file: digests of keys, never the keys
themselves."""

import sqlite3
import time
from collections.abc import Iterable
from dataclasses import dataclass

from kma.spool_file import SpoolFile


@dataclass(frozen=True, slots=True)
class Handled:
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


def note_handled(connection: sqlite3.Connection, handled: Iterable[Handled]) -> None:
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
