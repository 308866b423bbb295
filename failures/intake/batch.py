"""Taking the records of a KMA's spool: each is stored exactly once, whatever is sent again, and by whom at
once."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID

import structlog
from django.db import transaction
from django.db.models import QuerySet

from agents.models import Activation, LaunchSetting, Run, Server
from agents.models import Interruption as InterruptionRow
from agents.services import open_deliveries
from agents.services.interruptions import accept_interruption
from contract.errors import ContractError
from contract.messages import (
    MAX_RECORDS,
    AcknowledgementEnded,
    AcknowledgementOpened,
    Closing,
    Interruption,
    Protocol,
    Record,
    RecordBatch,
    RecordReceipt,
    Recovered,
    Refusal,
    ReplayOutcome,
    check_version,
)
from failures import counting, records
from failures.intake import attribution, rows, spools
from failures.intake.conflicts import keep_conflicts
from failures.intake.kinds.record_kind import BatchContext, Item, run_key
from failures.intake.rate_limit import Charge
from failures.intake.sanitize import BIGGEST
from failures.models import FailureProtocol, RecoveredMessage, SpoolMark
from failures.records import CLOSINGS, PROTOCOLS, RECOVERED, ReadRecord
from failures.sinks import StoredOutcome, hand_on, known_outcomes, register_letter_outcome, register_protocols
from failures.tallies.noting import note

__all__ = ["ForeignReport", "TooManyRecords", "accept_batch", "register_letter_outcome", "register_protocols"]

log = structlog.get_logger(__name__)

Refused = list[tuple[Record, str]]
OF_DELIVERIES = (AcknowledgementOpened, AcknowledgementEnded)


class ForeignReport(Exception):
    """The batch or a record of it speaks of another server than the token's: refuse it whole."""


class TooManyRecords(Exception):
    """More than MAX_RECORDS: refuse it whole; the KMA sends less at once."""


@dataclass(frozen=True, slots=True)
class _Taken:
    """What became of records that the mark does not know; `again`: known by their ids; `set_aside`: with the
    code."""

    new: Sequence[ReadRecord] = ()
    refused: Refused = field(default_factory=list)
    again: Sequence[Record] = ()
    superseded: Sequence[Record] = ()
    set_aside: Refused = field(default_factory=list)


def accept_batch(
    server: Server,
    batch: RecordBatch,
    now: datetime,
    *,
    charge: Charge | None = None,
    unknown: Sequence[str] = (),
) -> RecordReceipt:
    """Stores what is new of a batch in one transaction. `unknown`: names of fields around the records that
    were not understood. Raises ForeignReport, TooManyRecords, UnsupportedVersion, TooFast.

    The row of the spool is locked first: of two resends at the same time the second finds everything known.
    Where less of the spool is stored than its KMA was told, nothing is stored: it goes back to what is
    missing.
    """
    _check(server, batch)
    skew = None if batch.sent_at is None else round((batch.sent_at - now).total_seconds(), 3)
    with transaction.atomic(durable=True):
        mark = _locked_mark(server, batch, now)
        if batch.after is not None and mark.stored_up_to < batch.after:
            spools.note_restored(mark, batch.after, now)
            return RecordReceipt(stored_up_to=mark.stored_up_to)
        if charge is not None:
            charge.take(len(batch.records), now)
        fresh = _fresh(batch, mark)
        taken = _store(server, mark, fresh, now, skew) if fresh else _Taken()
        again = [*_stale(batch, fresh), *taken.again]
        conflicts = keep_conflicts(server, batch.spool, again, now)
        ununderstood = [*unknown, *(name for record in fresh for name in records.unknown(record))]
        spools.move(mark, [record.number for record in fresh], ununderstood, len(taken.set_aside), now)
    return RecordReceipt(
        stored_up_to=mark.stored_up_to,
        new=len(taken.new),
        known=len(again),
        refused=tuple(
            Refusal(record.number, reason) for record, reason in [*taken.refused, *taken.set_aside]
        ),
        known_numbers=_numbers(again),
        conflicts=_numbers(conflicts),
        superseded=_numbers(taken.superseded),
    )


def _numbers(of: Iterable[Record]) -> tuple[int, ...]:
    return tuple(sorted(record.number for record in of))


def _check(server: Server, batch: RecordBatch) -> None:
    check_version(batch.version)
    if len(batch.records) > MAX_RECORDS:
        raise TooManyRecords(f"{len(batch.records)} records in one batch; at most {MAX_RECORDS}.")
    named = {batch.server, *(name for record in batch.records if (name := _server_named(record)) is not None)}
    if foreign := sorted(named - {server.name}):
        raise ForeignReport(
            f"The token is of server {server.name}, the report of {', '.join(foreign)[:200]}."
        )
    if batch.after is not None and not 0 <= batch.after <= BIGGEST:
        raise ContractError("after", f"must be between 0 and {BIGGEST}")
    if not 0 < batch.first <= BIGGEST:
        raise ContractError("first", f"must be between 1 and {BIGGEST}")
    for index, record in enumerate(batch.records):
        if not 0 < record.number <= BIGGEST:
            raise ContractError(f"records[{index}].number", f"must be between 1 and {BIGGEST}")


def _server_named(record: Record) -> str | None:
    """The server that a record speaks of, looked at before the rest of it is checked."""
    run = record.content.get("run")
    name = run.get("server") if isinstance(run, dict) else None
    return name if isinstance(name, str) else None


def _locked_mark(server: Server, batch: RecordBatch, now: datetime) -> SpoolMark:
    marks = SpoolMark.objects.select_for_update()
    fresh = {"server": server, "updated_at": now, "stored_up_to": batch.first - 1}
    mark, _ = marks.get_or_create(spool=batch.spool, defaults=fresh)
    if mark.server_id != server.pk:
        raise ForeignReport(
            f"The spool {batch.spool} belongs to another server than the token's, {server.name}."
        )
    return mark


def _fresh(batch: RecordBatch, mark: SpoolMark) -> list[Record]:
    """Records above the mark, in order. Of two with one number the first counts."""
    fresh: dict[int, Record] = {}
    for record in sorted(batch.records, key=lambda record: record.number):
        if record.number > mark.stored_up_to:
            fresh.setdefault(record.number, record)
    return list(fresh.values())


def _stale(batch: RecordBatch, fresh: Sequence[Record]) -> list[Record]:
    """Records below the mark, and those whose number another one of the batch has."""
    taken = {id(record) for record in fresh}
    return [record for record in batch.records if id(record) not in taken]


def _store(
    server: Server, mark: SpoolMark, fresh: Sequence[Record], now: datetime, skew: float | None
) -> _Taken:
    """What became of records that the mark does not know."""
    spool = mark.spool
    readable, refused, again = _read(fresh)
    context = BatchContext(server, spool, now, skew)
    known = _look_up(context, [content for _, content in readable], refused)
    stored_before = _stored_ids(readable)
    again_closed = [
        Item(record, CLOSINGS, content)
        for record, content in readable
        if isinstance(content, Closing) and record.id not in stored_before
    ]
    stored_before |= CLOSINGS.repeated(again_closed, known)
    again += [record for record, _ in readable if record.id in stored_before]
    readable = [(record, content) for record, content in readable if record.id not in stored_before]
    foreign = attribution.to_set_aside(readable, known, has_lost=mark.lost_at is not None)
    set_aside = [(record, foreign[record.id].value) for record, _ in readable if record.id in foreign]
    readable = [(record, content) for record, content in readable if record.id not in foreign]

    protocols = [
        PROTOCOLS.row(Item(record, PROTOCOLS, content), known)
        for record, content in readable
        if isinstance(content, Protocol)
    ]
    recovered = [
        RECOVERED.row(Item(record, RECOVERED, content), known)
        for record, content in readable
        if isinstance(content, Recovered)
    ]
    unstored = rows.insert(protocols) | rows.insert(recovered)
    if unstored:
        # A copy of the spool may have brought one at this instant: then it is known, not refused.
        meanwhile = _stored_ids(pair for pair in readable if pair[0].id in unstored)
        again += [record for record, _ in readable if record.id in meanwhile]
        refused += [
            (record, unstored[record.id])
            for record, _ in readable
            if record.id in unstored.keys() - meanwhile
        ]
    rows.keep_refused(server, spool, refused, now)
    rows.keep_set_aside(server, spool, set_aside, now)
    note(row for row in protocols if row.pk not in unstored)

    stored = [(record, content) for record, content in readable if record.id not in unstored]
    superseded = [
        record
        for record, content in stored
        if isinstance(content, Interruption) and not accept_interruption(server, record.id, content, now)
    ]
    waiting = [(record.id, content) for record, content in stored if isinstance(content, OF_DELIVERIES)]
    if waiting:
        open_deliveries.accept(server, waiting, now)
    counting.count(known, stored, [record for record, _ in refused], now)
    outcomes = [
        StoredOutcome(record.id, content, known.is_verified(content))
        for record, content in stored
        if isinstance(content, ReplayOutcome)
    ]
    hand_on(outcomes, [row for row in protocols if row.pk not in unstored], now)
    return _Taken(stored, refused, again, superseded, set_aside)


def _read(fresh: Iterable[Record]) -> tuple[list[ReadRecord], Refused, list[Record]]:
    """(readable, refused, again): of two records with one UUID the first counts."""
    readable: dict[UUID, ReadRecord] = {}
    refused: Refused = []
    again: list[Record] = []
    for record in fresh:
        if record.id in readable:
            again.append(record)
            continue
        try:
            readable[record.id] = (record, records.read(record))
        except ContractError as error:
            refused.append((record, str(error)))
    return list(readable.values()), refused, again


def _stored_ids(readable: Iterable[ReadRecord]) -> set[UUID]:
    """Records that are here under another number: a spool that was copied, or a UUID that was used twice."""
    pairs = list(readable)
    ids = [record.id for record, _ in pairs]
    if not ids:
        return set()
    kinds: tuple[QuerySet[Any], ...] = (
        FailureProtocol.objects.all(),
        RecoveredMessage.objects.all(),
        InterruptionRow.objects.all(),
    )
    known, *others = (
        of_kind.filter(pk__among=ids).order_by().values_list("pk", flat=True) for of_kind in kinds
    )
    return {*known.union(*others, all=True), *known_outcomes(ids), *_stored_of_deliveries(pairs)}


def _stored_of_deliveries(readable: Iterable[ReadRecord]) -> set[UUID]:
    """Asked only where there are any: few settings leave deliveries open."""
    ids = [record.id for record, content in readable if isinstance(content, OF_DELIVERIES)]
    return open_deliveries.known_records(ids) if ids else set()


def _look_up(context: BatchContext, contents: Sequence[records.RunRecord], refused: Refused) -> BatchContext:
    keys = {run_key(content) for content in contents}
    keys |= {key for record, _ in refused if (key := records.raw_run_key(record)) is not None}
    activations = {activation for activation, _ in keys}
    runs = Run.objects.filter(server=context.server, activation__in=activations)
    return replace(
        context,
        settings=LaunchSetting.objects.in_bulk(
            {content.run.setting for content in contents}, field_name="key"
        ),
        activations=dict(Activation.objects.filter(pk__in=activations).values_list("pk", "setting__key")),
        runs={(run.activation_id, run.epoch): run for run in runs},
    )
