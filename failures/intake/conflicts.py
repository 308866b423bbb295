"""Records that came again: the same content is only known, other content under the same id or number is
kept."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID

import structlog

from contract.messages import Record
from contract.wire import ContractError
from failures.intake.kinds.record_kind import BatchContext, Item, KindTable, RecordKind
from failures.intake.rows import LONGEST_CONTENT, as_text
from failures.intake.sanitize import fit
from failures.models import FailureProtocol, RecordConflict
from failures.models.protocol import ERASED

log = structlog.get_logger(__name__)


def keep_conflicts(kinds: KindTable, batch: BatchContext, again: Sequence[Record]) -> list[Record]:
    """Those of `again`, records that are not stored because they are known, that say something else than what
    is stored; each is kept once. What retention has deleted meanwhile cannot be compared: it is known."""
    if not again:
        return []
    found = list(_conflicts(kinds, batch, again))
    RecordConflict.objects.bulk_create(
        [_row(batch, record, stored_id) for record, stored_id in found], ignore_conflicts=True
    )
    for record, stored_id in found:
        log.warning(
            "record conflicts",
            server=batch.server.name,
            spool=str(batch.spool),
            number=record.number,
            id=str(stored_id),
        )
    return [record for record, _ in found]


def _conflicts(
    kinds: KindTable, batch: BatchContext, again: Sequence[Record]
) -> Iterator[tuple[Record, UUID]]:
    """With the ids of what is stored in their place."""
    stored = kinds.stored_rows({record.id for record in again})
    numbered = FailureProtocol.objects.filter(
        spool=batch.spool, number__in={record.number for record in again}
    )
    numbers = dict(numbered.order_by().values_list("number", "pk"))
    without_row = [item for record in again if record.id not in stored and (item := _read(kinds, record))]
    others = {
        id(record): other
        for kind, own in kinds.by_kind(without_row)
        for record, other in kind.stored_otherwise(own, batch)
    }
    for record in again:
        if record.id in stored:
            if not _is_known(_read(kinds, record), *stored[record.id]):
                yield record, record.id
        elif (other := others.get(id(record)) or numbers.get(record.number)) is not None:
            yield record, other


def _read(kinds: KindTable, record: Record) -> Item[Any] | None:
    try:
        return kinds.read(record)
    except ContractError:
        return None


def _is_known(item: Item[Any] | None, kind: RecordKind[Any], row: Any) -> bool:
    """Also where the row was erased: what was taken out of it must not come back beside it, when a lost
    answer has a record sent again."""
    if getattr(row, "message_key", "").startswith(ERASED):
        return True
    return item is not None and item.kind is kind and _equal(kind.columns(item.content), row)


def _equal(columns: Mapping[str, Any], row: Any) -> bool:
    return all(_comparable(value) == _comparable(getattr(row, name)) for name, value in columns.items())


def _comparable(value: Any) -> Any:
    """PostgreSQL gives a large real number of a JSON column back as a whole one."""
    if isinstance(value, dict):
        return {name: _comparable(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_comparable(item) for item in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _row(batch: BatchContext, record: Record, stored_id: UUID) -> RecordConflict:
    return RecordConflict(
        record_id=record.id,
        spool=batch.spool,
        number=record.number,
        server=batch.server,
        kind=fit(record.kind, 60),
        stored_id=stored_id,
        content=fit(as_text(record.content), LONGEST_CONTENT),
        received_at=batch.now,
    )


def conflicts_of(protocol: FailureProtocol, most: int) -> Iterator[RecordConflict]:
    """What else came in place of this protocol, the newest first."""
    yield from (
        RecordConflict.objects.filter(stored_id=protocol.pk)
        .select_related("server")
        .order_by("-received_at", "-id")[:most]
    )
