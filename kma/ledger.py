"""What of runs and settings must outlive this process, in the spool's file: totals, record counts, breaker counts."""

import json
import time
from dataclasses import asdict, dataclass, field
from typing import Any
from uuid import UUID

from contract.breaker import Counts
from kma.journal import Totals
from kma.spool_file import SpoolFile

_KEEP_SECONDS = 30 * 86400.0  # closed runs, known attempts


@dataclass(frozen=True, slots=True)
class StoredRun:
    """`records`: spooled for this run so far. `about`: the run, as the JSON of its RecordRun."""

    run: str
    about: dict[str, Any]
    records: int
    totals: Totals
    closed: bool


@dataclass(frozen=True, slots=True)
class Carried:
    """What one run of a setting leaves to the next on this server; `counts` only within one activation: who enables
    the setting sets them to 0."""

    successes: int = 0
    activation: str = ""
    counts: Counts = field(default_factory=Counts)


def run_key(activation: UUID, epoch: int) -> str:
    return f"{activation}/{epoch}"


class Ledger:
    """Safe between threads."""

    def __init__(self, file: SpoolFile) -> None:
        self._file = file
        before = time.time() - _KEEP_SECONDS
        with file.transaction() as connection:
            connection.execute("DELETE FROM runs WHERE closed AND seen_at < ?", (before,))
            connection.execute("DELETE FROM attempts WHERE seen_at < ?", (before,))

    def open_run(self, run: str, about: dict[str, Any]) -> StoredRun:
        """The run's row, made if there is none: its records are counted from now on."""
        with self._file.transaction() as connection:
            connection.execute(
                "INSERT INTO runs (run, about, seen_at) VALUES (?, ?, ?)"
                " ON CONFLICT DO UPDATE SET seen_at = excluded.seen_at",
                (run, json.dumps(about), time.time()),
            )
        found = self.run(run)
        assert found is not None
        return found

    def run(self, run: str) -> StoredRun | None:
        with self._file.reading() as connection:
            row = connection.execute(f"{_SELECT} WHERE run = ?", (run,)).fetchone()
        return _stored(row) if row else None

    def unclosed(self) -> list[StoredRun]:
        """Runs that have sent no closing record yet."""
        with self._file.reading() as connection:
            return [_stored(row) for row in connection.execute(f"{_SELECT} WHERE NOT closed").fetchall()]

    def write_totals(self, run: str, totals: Totals) -> None:
        with self._file.transaction() as connection:
            connection.execute("UPDATE runs SET totals = ? WHERE run = ?", (json.dumps(asdict(totals)), run))

    def carried(self, setting: str) -> Carried:
        with self._file.reading() as connection:
            row = connection.execute("SELECT state FROM settings WHERE setting = ?", (setting,)).fetchone()
        if not row:
            return Carried()
        try:
            state = json.loads(row[0])
            return Carried(state["successes"], state["activation"], Counts(**state["counts"]))
        except (KeyError, TypeError, ValueError):
            # Written by another version. A count that begins anew costs less than a run that can never begin.
            return Carried()

    def carry(self, setting: str, carried: Carried) -> None:
        with self._file.transaction() as connection:
            connection.execute("INSERT OR REPLACE INTO settings VALUES (?, ?)", (setting, json.dumps(asdict(carried))))


_SELECT = "SELECT run, about, records, totals, closed FROM runs"


def _stored(row: tuple[str, str, int, str, int]) -> StoredRun:
    return StoredRun(row[0], json.loads(row[1]), row[2], Totals(**json.loads(row[3])), bool(row[4]))
