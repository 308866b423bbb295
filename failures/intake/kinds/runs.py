"""Records about whole runs: how one ended, and that its breaker tripped."""

from collections.abc import Iterator, Sequence
from typing import Any
from uuid import UUID

from agents.breaker.interruption import accept_interruption, interruption_columns
from agents.models import Interruption as InterruptionRow
from agents.models import Run, RunPhase
from contract.breaker import TripReason
from contract.messages import MAX_EVIDENCE, Record
from contract.records import Closing, Interruption
from contract.wire import ContractError
from failures.intake.kinds.record_kind import BatchContext, Item, RecordKind, RunTotals, StoreResult, run_key
from failures.intake.sanitize import whole

REASONS = tuple(reason.value for reason in TripReason)
BIGGEST_COUNT = 2**31 - 1


class Interruptions(RecordKind[Interruption]):
    contents = (Interruption,)
    rows = InterruptionRow.objects.all()

    def check(self, content: Interruption) -> None:
        if content.reason not in REASONS:
            raise ContractError("content.reason", f"must be one of {', '.join(REASONS)}")
        if len(content.evidence) > MAX_EVIDENCE:
            raise ContractError("content.evidence", f"holds more than {MAX_EVIDENCE} ids")
        whole(content.max_failures, "content.max_failures", least=1, most=BIGGEST_COUNT)
        for name in ("same", "any"):
            whole(getattr(content.counts, name), f"content.counts.{name}", most=BIGGEST_COUNT)

    def columns(self, content: Interruption) -> dict[str, Any]:
        return interruption_columns(content)

    def store(self, items: Sequence[Item[Interruption]], batch: BatchContext) -> StoreResult:
        superseded = [
            item.record
            for item in items
            if not accept_interruption(batch.server, item.record.id, item.content, batch.now)
        ]
        return StoreResult(superseded=superseded)


class Closings(RecordKind[Closing]):
    """The first one of a run counts, its totals stay. It is kept on the run alone."""

    contents = (Closing,)

    def check(self, content: Closing) -> None:
        for name in ("records", "handled", "failed", "temporary", "restarts"):
            whole(getattr(content, name), f"content.{name}")

    def repeated(self, items: Sequence[Item[Closing]], batch: BatchContext) -> set[UUID]:
        """Those after what is stored, or after one before them."""
        closed = {key for key, run in batch.runs.items() if run.closing_records is not None}
        again = set()
        for item in items:
            key = run_key(item.content)
            if key in closed:
                again.add(item.record.id)
            elif key in batch.runs:
                closed.add(key)
        return again

    def stored_otherwise(
        self, items: Sequence[Item[Closing]], batch: BatchContext
    ) -> Iterator[tuple[Record, UUID]]:
        """Yields them with the activation whose run was closed with other totals."""
        activations = {item.content.run.activation for item in items}
        runs = Run.objects.filter(server=batch.server, activation__in=activations).exclude(
            closing_records=None
        )
        closed = {(run.activation_id, run.epoch): run for run in runs}
        for item in items:
            run = closed.get(run_key(item.content))
            if run is not None and _differs(item.content, run):
                yield item.record, run.activation_id

    def add(self, content: Closing, totals: RunTotals) -> None:
        totals.closing = content


def _differs(closing: Closing, run: Run) -> bool:
    # Of an interrupted run the MA lowers the records that it waits for, when they will never come.
    lowered = run.state == RunPhase.INTERRUPTED and closing.records > (run.closing_records or 0)
    return closing.handled != run.handled or (closing.records != run.closing_records and not lowered)
