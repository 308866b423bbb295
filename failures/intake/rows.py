"""Rows of records into the database, such that one that it does not take never costs the others; and
records that are refused, set aside, or in conflict with what is stored."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar
from uuid import UUID

import structlog
from django.db import DataError, IntegrityError, transaction
from django.db.models import Model

from agents.models import LaunchSetting, Run
from console.database import bulk
from contract.messages import Record
from contract.wire import ContractError
from failures.intake.kinds.record_kind import BatchContext, Item, KindTable, RecordKind, RunKey, run_key
from failures.intake.sanitize import fit, plain
from failures.models import FailureProtocol, RecordConflict, RefusedRecord
from failures.models.protocol import ERASED
from failures.models.spool import SetAside

log = structlog.get_logger(__name__)

Refused = list[tuple[Record, str]]  # with the reason or the code
Row = TypeVar("Row", bound=Model)

LONGEST_CONTENT = 64 * 1024
MOST_SET_ASIDE = 1000  # of one server: a stolen token fills no disk
# What a database or its driver says of a value, not of itself: OperationalError is not among them.
OF_A_VALUE = (DataError, IntegrityError, ValueError, TypeError, OverflowError)


def insert_each(rows: Sequence[Row]) -> dict[UUID, str]:
    """Inserts all, or where the database refuses, one by one: what could not be stored, with the reason."""
    if not rows:
        return {}
    try:
        with transaction.atomic():
            bulk.insert_rows(rows)
        return {}
    except OF_A_VALUE as error:
        log.warning("records stored one by one", reason=str(error))
    unstored = {}
    for row in rows:
        try:
            with transaction.atomic():
                row.save(force_insert=True)
        except OF_A_VALUE as error:
            unstored[row.pk] = f"the database refused the record: {error}"
    return unstored


def keep_set_aside(batch: BatchContext, set_aside: Refused) -> None:
    """The first of them, up to a bound for each server; `SpoolMark.set_aside` counts all. Two spools of a
    server at once may pass the bound by what they bring."""
    if not set_aside:
        return
    kept = (
        RefusedRecord.objects.filter(server=batch.server).exclude(code="").order_by()[:MOST_SET_ASIDE].count()
    )
    _keep(batch, [(record, "", code) for record, code in set_aside[: MOST_SET_ASIDE - kept]])


def keep_refused(batch: BatchContext, refused: Refused) -> None:
    _keep(batch, [(record, reason, "") for record, reason in refused])


def _keep(batch: BatchContext, refused: Sequence[tuple[Record, str, str]]) -> None:
    """(record, reason, code)"""
    rows = [
        RefusedRecord(
            spool=batch.spool,
            number=record.number,
            record_id=record.id,
            server=batch.server,
            kind=fit(record.kind, 60),
            reason=fit(reason, 2000),
            code=code,
            content=fit(as_text(record.content), LONGEST_CONTENT),
            received_at=batch.now,
        )
        for record, reason, code in refused
    ]
    RefusedRecord.objects.bulk_create(rows, ignore_conflicts=True)
    for row in rows:
        why = row.code or row.reason
        log.warning(
            "record refused",
            server=batch.server.name,
            spool=str(batch.spool),
            number=row.number,
            reason=why,
        )


def as_text(content: Any) -> str:
    """The content of a record for people."""
    try:
        return json.dumps(plain(content), ensure_ascii=False)
    except (ContractError, RecursionError) as error:
        return f"<not kept: {error}>"


# -- records that are not simply stored ----------------------------------------------------------------------
# Those that came again, with the same or other content, and those of a run that is not the server's.


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
    """Yields them with the ids of what is stored in their place."""
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
    """Says so for an erased row too: what was taken out of it must not come back beside it, when a lost
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


# -- whose run a record speaks of ----------------------------------------------------------------------------
# A token proves the server, not that this server ever had the run.
#
# Three answers. *Verified*: this server has a row of that run. *Set aside*: the row of that run is another
# server's, or the outcome of a replay comes from a server that never ran its setting. It is kept as refused
# with a code, and the spool goes on. *Unverified*: nobody here can tell, as after a database was put back
# from a copy. It is stored and marked, and settles no replay.
#
# A run moves between servers by a row of its own for each: what a server that lost it reports late is
# verified. Epochs begin again after a database was put back, so the row of a lost run may be another server's
# by now: of a spool that has lost something nothing is set aside. A hostile server may claim that, and gains
# a mark of doubt by it.


def to_set_aside(doubtful: Sequence[Item[Any]], batch: BatchContext) -> dict[UUID, SetAside]:
    """{record: why} of records that are not verified; what is not among them is stored."""
    elsewhere, never_ran = _runs_of_others(doubtful, batch), _settings_never_run(doubtful, batch)
    found: dict[UUID, SetAside] = {}
    for item in doubtful:
        if run_key(item.content) in elsewhere:
            found[item.record.id] = SetAside.ANOTHER_SERVER
        elif item.kind.needs_own_run and item.content.run.setting in never_ran:
            found[item.record.id] = SetAside.NEVER_RAN
    return found


def _runs_of_others(doubtful: Sequence[Item[Any]], batch: BatchContext) -> set[RunKey]:
    """Runs of activations of which this server never had one."""
    had = {activation for activation, _ in batch.runs}
    activations = {item.content.run.activation for item in doubtful} & batch.activations.keys() - had
    runs = Run.objects.filter(activation__in=activations).exclude(server=batch.server).order_by()
    return set(runs.values_list("activation", "epoch")) if activations else set()


def _settings_never_run(doubtful: Sequence[Item[Any]], batch: BatchContext) -> set[str]:
    """Leaves out those that were removed: their runs are gone, too, and nobody knows who ran them."""
    keys = {item.content.run.setting for item in doubtful if item.kind.needs_own_run}
    if not keys:
        return set()
    settings = LaunchSetting.objects.filter(key__in=keys).order_by()
    ran = Run.objects.filter(server=batch.server, activation__setting__key__in=keys).order_by()
    of_runs = ran.values_list("activation__setting__key", flat=True).distinct()
    return set(settings.values_list("key", flat=True)) - set(of_runs)
