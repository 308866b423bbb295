"""Closing records of runs that another one has closed: the first counts, its totals stay."""

from collections.abc import Iterable, Mapping
from uuid import UUID

from agents.models import Run, RunPhase
from contract.messages import Closing
from failures.intake.kinds.record_kind import RunKey, run_key
from failures.records import ReadRecord


def repeated(readable: Iterable[ReadRecord], runs: Mapping[RunKey, Run]) -> set[UUID]:
    """Ids of records that close a run once more, after what is stored or after one before them."""
    closed = {key for key, run in runs.items() if run.closing_records is not None}
    again = set()
    for record, content in readable:
        if not isinstance(content, Closing) or (key := run_key(content)) not in runs:
            continue
        if key in closed:
            again.add(record.id)
        closed.add(key)
    return again


def differs(closing: Closing, run: Run) -> bool:
    """Whether `run` was closed with other totals."""
    if run.closing_records is None:
        return False
    # Of an interrupted run the MA lowers the records that it waits for, when they will never come.
    lowered = run.state == RunPhase.INTERRUPTED and closing.records > run.closing_records
    return closing.handled != run.handled or (closing.records != run.closing_records and not lowered)
