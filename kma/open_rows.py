"""Which deliveries of the mode CLIENT wait for an answer, in the spool's file, in the transactions of their
records."""

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from contract.records import AcknowledgementEnded, AcknowledgementOpened, Content

SELECT_OPEN = "SELECT acknowledgement, run, committing FROM open_acknowledgements ORDER BY acknowledgement"


@dataclass(frozen=True, slots=True)
class Open:
    """`run` is the key of its run. `committing`: its commit was to be carried out; whether it was, nobody
    noted."""

    acknowledgement: str
    run: str
    committing: int


class Spooled(Protocol):
    """A record to be; see kma.spool.New."""

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
