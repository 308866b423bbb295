"""Stored records counted on the runs that they speak of."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime

from agents.services.lateness import note_late
from agents.services.outcomes import record_outcomes
from contract.messages import Closing, Protocol, Record, Recovered
from failures import records
from failures.intake.kinds.record_kind import BatchContext, RunKey, RunTotals, run_key
from failures.records import ReadRecord


def count(
    known: BatchContext, stored: Sequence[ReadRecord], refused: Sequence[Record], now: datetime
) -> None:
    """A refused record counts among a run's stored ones: its closing record counts it too, and it will never
    come."""
    counts: dict[RunKey, RunTotals] = defaultdict(RunTotals)
    for _, content in stored:
        _add(content, counts[run_key(content)])
    for record in refused:
        if (key := records.raw_run_key(record)) is not None:
            counts[key].stored += 1
    _count_astray(known, counts, now)
    # In the order of the rows' keys, so that two intakes never wait for each other in a circle.
    runs = [(run, counts[key]) for key in counts if (run := known.runs.get(key)) is not None]
    for run, of_run in sorted(runs, key=lambda pair: pair[0].pk):
        record_outcomes(
            run,
            failed=of_run.failed,
            temporary=of_run.temporary,
            recovered=of_run.recovered,
            stored=of_run.stored,
            closing=of_run.closing,
            now=now,
        )


def _count_astray(known: BatchContext, counts: dict[RunKey, RunTotals], now: datetime) -> None:
    """Of activations that are known, but not that run of them: late all the same, where they have ended."""
    for activation, epoch in sorted(counts):
        if activation in known.activations and (activation, epoch) not in known.runs:
            astray = counts[activation, epoch]
            note_late(activation, astray.stored, astray.failed, astray.temporary, astray.closing, now)


def _add(content: records.RunRecord, counts: RunTotals) -> None:
    if isinstance(content, Closing):
        records.CLOSINGS.add(content, counts)
        return
    if isinstance(content, Protocol):
        records.PROTOCOLS.add(content, counts)
        return
    if isinstance(content, Recovered):
        records.RECOVERED.add(content, counts)
        return
    counts.stored += 1
