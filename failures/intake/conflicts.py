"""Records that came again: the same content is only known, other content under the same id or number is
kept."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import structlog

from agents.models import Interruption as InterruptionRow
from agents.models import Server
from contract.errors import ContractError
from contract.messages import KINDS, Closing, Interruption, Protocol, Record, Recovered, ReplayOutcome
from failures import records
from failures.intake.kinds.record_kind import BatchContext, Item
from failures.intake.rows import LONGEST_CONTENT, as_text
from failures.intake.sanitize import fit
from failures.models import FailureProtocol, RecordConflict, RecoveredMessage
from failures.models.protocol import ERASED
from failures.sinks import known_outcomes

log = structlog.get_logger(__name__)

KEPT_HERE = (FailureProtocol, RecoveredMessage, InterruptionRow)


@dataclass(frozen=True, slots=True)
class _Stored:
    """Rows that have the ids of the records, the ids of protocols that have their numbers, and the
    activations whose runs they close otherwise."""

    protocols: Mapping[UUID, FailureProtocol]
    recoveries: Mapping[UUID, RecoveredMessage]
    interruptions: Mapping[UUID, InterruptionRow]
    outcomes: Mapping[UUID, Any]
    numbers: Mapping[int, UUID]
    closed: Mapping[int, UUID]


def keep_conflicts(server: Server, spool: UUID, again: Sequence[Record], now: datetime) -> list[Record]:
    """Those of `again`, records that are not stored because they are known, that say something else than what
    is stored; each is kept once. What retention has deleted meanwhile cannot be compared: it is known."""
    if not again:
        return []
    stored = _look_up(server, spool, again, now)
    found = [(record, stored_id) for record in again if (stored_id := _differs(record, stored)) is not None]
    RecordConflict.objects.bulk_create(
        [_row(server, spool, record, stored_id, now) for record, stored_id in found], ignore_conflicts=True
    )
    for record, stored_id in found:
        log.warning(
            "record conflicts", server=server.name, spool=str(spool), number=record.number, id=str(stored_id)
        )
    return [record for record, _ in found]


def _look_up(server: Server, spool: UUID, again: Sequence[Record], now: datetime) -> _Stored:
    ids = {record.id for record in again}
    numbered = FailureProtocol.objects.filter(spool=spool, number__in={record.number for record in again})
    return _Stored(
        FailureProtocol.objects.in_bulk(ids),
        RecoveredMessage.objects.in_bulk(ids),
        InterruptionRow.objects.in_bulk(ids),
        known_outcomes(ids),
        dict(numbered.order_by().values_list("number", "pk")),
        _closed_otherwise(server, spool, now, again),
    )


def _differs(record: Record, stored: _Stored) -> UUID | None:
    """The id of what is stored in its place and says something else."""
    kinds: tuple[Mapping[UUID, Any], ...] = (
        stored.protocols,
        stored.recoveries,
        stored.interruptions,
        stored.outcomes,
    )
    row = next((rows[record.id] for rows in kinds if record.id in rows), None)
    if row is not None:
        return None if _erased(row) or _same(record, row) else record.id
    return stored.closed.get(id(record)) or stored.numbers.get(record.number)


def _closed_otherwise(server: Server, spool: UUID, now: datetime, again: Sequence[Record]) -> dict[int, UUID]:
    """{id(record): activation} of closing records: they have no row of their own."""
    items = []
    for record in again:
        if KINDS.get(record.kind) is Closing:
            with suppress(ContractError):
                content = records.read(record)
                assert isinstance(content, Closing)
                items.append(Item(record, records.CLOSINGS, content))
    if not items:
        return {}
    found = records.CLOSINGS.stored_otherwise(items, BatchContext(server, spool, now))
    return {id(record): activation for record, activation in found}


def _erased(row: Any) -> bool:
    """What was taken out of it must not come back beside it, when a lost answer has a record sent again."""
    return not isinstance(row, InterruptionRow) and row.message_key.startswith(ERASED)


def _same(record: Record, row: Any) -> bool:
    try:
        content = records.read(record)
    except ContractError:
        return False
    if isinstance(content, Protocol) and isinstance(row, FailureProtocol):
        return _equal(records.PROTOCOLS.columns(content), row)
    if isinstance(content, Recovered) and isinstance(row, RecoveredMessage):
        return _equal(records.RECOVERED.columns(content), row)
    if isinstance(content, Interruption) and isinstance(row, InterruptionRow):
        return _equal(records.INTERRUPTIONS.columns(content), row)
    if isinstance(content, ReplayOutcome) and not isinstance(row, KEPT_HERE):
        return _equal(records.outcome_columns(content), row)
    return False


def _equal(columns: Mapping[str, Any], row: Any) -> bool:
    return all(_comparable(value) == _comparable(getattr(row, name)) for name, value in columns.items())


def _comparable(value: Any) -> Any:
    """PostgreSQL gives a large real number of a JSON column back as a whole one."""
    if isinstance(value, dict):
        return {name: _comparable(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_comparable(item) for item in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _row(server: Server, spool: UUID, record: Record, stored_id: UUID, now: datetime) -> RecordConflict:
    return RecordConflict(
        record_id=record.id,
        spool=spool,
        number=record.number,
        server=server,
        kind=fit(record.kind, 60),
        stored_id=stored_id,
        content=fit(as_text(record.content), LONGEST_CONTENT),
        received_at=now,
    )


def conflicts_of(protocol: FailureProtocol, most: int) -> Iterator[RecordConflict]:
    """What else came in place of this protocol, the newest first."""
    yield from (
        RecordConflict.objects.filter(stored_id=protocol.pk)
        .select_related("server")
        .order_by("-received_at", "-id")[:most]
    )
