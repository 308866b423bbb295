"""Records about single messages: handled well after a failure, or left open until somebody answers."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from agents.acknowledgements.answers import Told, accept_reports, known_records
from contract.acknowledgements import read_id
from contract.records import AcknowledgementEnded, AcknowledgementOpened, Recovered
from contract.wire import ContractError
from failures.intake.kinds.record_kind import (
    BatchContext,
    Item,
    RecordKind,
    RunTotals,
    StoreResult,
    check_message,
)
from failures.intake.rows import insert_each
from failures.intake.sanitize import fit
from failures.models import RecoveredMessage


class RecoveredMessages(RecordKind[Recovered]):
    contents = (Recovered,)
    rows = RecoveredMessage.objects.all()

    def check(self, content: Recovered) -> None:
        check_message(content.message)

    def columns(self, content: Recovered) -> dict[str, Any]:
        return {
            "setting_key": fit(content.run.setting, 200),
            "activation_uuid": content.run.activation,
            "server_name": fit(content.run.server, 63),
            "message_key": fit(content.message.key, 255),
            "attempt": content.message.attempt,
            "occurred_at": content.occurred_at,
        }

    def store(self, items: Sequence[Item[Recovered]], batch: BatchContext) -> StoreResult:
        return StoreResult(insert_each([self.row(item, batch) for item in items]))

    def add(self, content: Recovered, totals: RunTotals) -> None:
        super().add(content, totals)
        totals.recovered += 1


class Acknowledgements(RecordKind[Told]):
    """Deliveries that wait for an answer; a row has the ids of the records that began and ended it."""

    contents = (AcknowledgementOpened, AcknowledgementEnded)

    def check(self, content: Told) -> None:
        """A server speaks of the deliveries of its own runs only."""
        try:
            parts = read_id(content.acknowledgement)
        except ValueError as error:
            raise ContractError("content.acknowledgement", str(error)) from None
        run = content.run
        if (parts.server, parts.activation, parts.epoch) != (run.server, run.activation, run.epoch):
            raise ContractError("content.acknowledgement", "is of another run")

    def repeated(self, items: Sequence[Item[Told]], batch: BatchContext) -> set[UUID]:
        return known_records([item.record.id for item in items])

    def store(self, items: Sequence[Item[Told]], batch: BatchContext) -> StoreResult:
        accept_reports(batch.server, [(item.record.id, item.content) for item in items], batch.now)
        return StoreResult()
