"""What of runs and settings must outlive this process, in the spool's file: totals, record counts, breaker
counts."""

import json
import sqlite3
import time
from dataclasses import asdict, dataclass, field
from typing import Any
from uuid import UUID

from contract.breaker import Counts
from contract.wire import dump, load
from kma.spool.file import SpoolFile
from kma.spool.journal import Totals

_KEEP_SECONDS = 30 * 86400.0  # closed runs, known attempts


@dataclass(frozen=True, slots=True)
class StoredRun:
    """`records`: spooled for this run so far. `about`: the run, as the JSON of its RecordRun. `interrupted`:
    why its breaker tripped, empty otherwise; such a run is closed and never taken up again."""

    run: str
    about: dict[str, Any]
    records: int
    totals: Totals
    closed: bool
    interrupted: str = ""


@dataclass(frozen=True, slots=True)
class CarriedCounts:
    """What one run of a setting leaves to the next on this server (`kma.delivery.breaker.first_carried`).

    `failures`: that the setting counted here ever. `evidence`: ids of the protocols that `counts` rest on,
    oldest first. `interrupted`: the run that left this had tripped.
    """

    successes: int = 0
    failures: int = 0
    activation: str = ""
    epoch: int = 0
    counts: Counts = field(default_factory=Counts)
    evidence: tuple[UUID, ...] = ()
    interrupted: bool = False


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the run `run` has come. `interrupted`: why its breaker tripped, empty otherwise."""

    run: str
    setting: str
    totals: Totals
    carried: CarriedCounts
    interrupted: str = ""


def run_key(activation: UUID, epoch: int) -> str:
    return f"{activation}/{epoch}"


class Ledger:
    """Safe between threads."""

    def __init__(self, file: SpoolFile) -> None:
        self._file = file
        before = time.time() - _KEEP_SECONDS
        with file.transaction() as connection:
            connection.execute("DELETE FROM runs WHERE closed AND seen_at < ?", (before,))
            connection.execute("DELETE FROM interrupted WHERE run NOT IN (SELECT run FROM runs)")
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
            row = connection.execute(f"{_SELECT} WHERE runs.run = ?", (run,)).fetchone()
        return _stored(row) if row else None

    def unclosed(self) -> list[StoredRun]:
        """Runs that have sent no closing record yet."""
        with self._file.reading() as connection:
            return [_stored(row) for row in connection.execute(f"{_SELECT} WHERE NOT closed").fetchall()]

    def totals(self) -> dict[str, Totals]:
        """Of every run that is known, by its key."""
        with self._file.reading() as connection:
            rows = [_stored(row) for row in connection.execute(_SELECT).fetchall()]
        return {row.run: row.totals for row in rows}

    def note(self, progress: Progress) -> None:
        """Where no record is stored with it; see `Spool.append`."""
        with self._file.transaction() as connection:
            write_progress(connection, progress)

    def carried(self, setting: str) -> CarriedCounts:
        with self._file.reading() as connection:
            row = connection.execute("SELECT state FROM settings WHERE setting = ?", (setting,)).fetchone()
        if not row:
            return CarriedCounts()
        try:
            return load(CarriedCounts, json.loads(row[0]))
        except ValueError:
            # Written by another version. A count that begins anew costs less than a run that can never begin.
            return CarriedCounts()


def write_progress(connection: sqlite3.Connection, progress: Progress) -> None:
    """Within the transaction of the records that made it."""
    totals, carried = json.dumps(asdict(progress.totals)), json.dumps(dump(progress.carried))
    connection.execute("UPDATE runs SET totals = ? WHERE run = ?", (totals, progress.run))
    connection.execute("INSERT OR REPLACE INTO settings VALUES (?, ?)", (progress.setting, carried))
    if progress.interrupted:
        connection.execute(
            "INSERT OR IGNORE INTO interrupted VALUES (?, ?)", (progress.run, progress.interrupted)
        )


_SELECT = (
    "SELECT runs.run, about, records, totals, closed, coalesce(reason, '')"
    " FROM runs LEFT JOIN interrupted ON interrupted.run = runs.run"
)


def _stored(row: tuple[str, str, int, str, int, str]) -> StoredRun:
    return StoredRun(row[0], json.loads(row[1]), row[2], Totals(**json.loads(row[3])), bool(row[4]), row[5])
