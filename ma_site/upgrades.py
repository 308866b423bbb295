"""What an upgrade does to the database, and for how long: decided from what migrations say of themselves."""

from collections.abc import Sequence
from dataclasses import dataclass

# Rows a second, rough and on the slow side: SQLite copies a table for a new column, an index reads it, a
# program of ours changes rows one batch after the other. PostgreSQL adds a column at once.
COPIED, READ, CHANGED = 100_000, 300_000, 5_000
MAKES, ADDS, INDEXES, RUNS = "makes", "adds", "indexes", "runs"


@dataclass(frozen=True, slots=True)
class Step:
    """One operation of a migration. `rows` of its table now, `seconds` that it locks it, about."""

    migration: str
    table: str
    rows: int
    seconds: float
    reversible: bool


@dataclass(frozen=True, slots=True)
class Plan:
    """`applied`: migrations before; `jobs`: those that go on by themselves after the upgrade."""

    steps: tuple[Step, ...]
    applied: Sequence[str]
    jobs: int


def estimate(kind: str, rows: int, *, sqlite: bool) -> float:
    """Seconds, rounded up to a whole one."""
    if kind == MAKES or (kind == ADDS and not sqlite):
        return 0.0
    rate = {ADDS: COPIED, INDEXES: READ, RUNS: CHANGED}[kind]
    return float(-(-rows // rate))
