"""Taking the records of a KMA's spool: each is stored exactly once, whatever is sent again, and by whom at once."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet

from agents.models import Activation, LaunchSetting, Run, Server
from agents.models import Interruption as InterruptionRow
from agents.services.interruptions import accept_interruption
from contract.errors import ContractError, UnsupportedVersion
from contract.messages import (
    MAX_RECORDS,
    VERSION,
    Interruption,
    LetterOutcome,
    Protocol,
    Record,
    RecordBatch,
    RecordReceipt,
    Recovered,
    Refusal,
)
from failures import counting, records, writing
from failures.hygiene import BIGGEST
from failures.models import FailureProtocol, RecoveredMessage, SpoolMark
from failures.records import Known, ReadRecord
from failures.sinks import StoredOutcome, hand_on, register_letter_outcome, register_protocols
from failures.tallies.noting import note

__all__ = ["ForeignReport", "TooManyRecords", "accept_batch", "register_letter_outcome", "register_protocols"]

Refused = list[tuple[Record, str]]


class ForeignReport(Exception):
    """The batch or a record of it speaks of another server than the token's: refuse it whole."""


class TooManyRecords(Exception):
    """More than MAX_RECORDS: refuse it whole; the KMA sends less at once."""


def accept_batch(server: Server, batch: RecordBatch, now: datetime) -> RecordReceipt:
    """Stores what is new of a batch in one transaction. Raises ForeignReport, TooManyRecords, UnsupportedVersion.

    The row of the spool is locked first: of two resends at the same time the second finds everything known.
    """
    _check(server, batch)
    with transaction.atomic(durable=True):
        mark = _locked_mark(server, batch.spool, now)
        fresh = _fresh(batch, mark)
        new, refused = _store(server, batch.spool, fresh, now) if fresh else (0, [])
        if fresh:
            mark.stored_up_to, mark.updated_at = fresh[-1].number, now
            mark.save(update_fields=["stored_up_to", "updated_at"])
    return RecordReceipt(
        stored_up_to=mark.stored_up_to,
        new=new,
        known=len(batch.records) - new - len(refused),
        refused=tuple(Refusal(record.number, reason) for record, reason in refused),
    )


def _check(server: Server, batch: RecordBatch) -> None:
    if batch.version > VERSION:
        raise UnsupportedVersion("version", f"this MA speaks up to version {VERSION}")
    if len(batch.records) > MAX_RECORDS:
        raise TooManyRecords(f"{len(batch.records)} records in one batch; at most {MAX_RECORDS}.")
    named = {batch.server, *(name for record in batch.records if (name := _server_named(record)) is not None)}
    if foreign := sorted(named - {server.name}):
        raise ForeignReport(f"The token is of server {server.name}, the report of {', '.join(foreign)[:200]}.")
    for index, record in enumerate(batch.records):
        if not 0 < record.number <= BIGGEST:
            raise ContractError(f"records[{index}].number", f"must be between 1 and {BIGGEST}")


def _server_named(record: Record) -> str | None:
    """The server that a record speaks of, looked at before the rest of it is checked."""
    run = record.content.get("run")
    name = run.get("server") if isinstance(run, dict) else None
    return name if isinstance(name, str) else None


def _locked_mark(server: Server, spool: UUID, now: datetime) -> SpoolMark:
    marks = SpoolMark.objects.select_for_update()
    mark, _ = marks.get_or_create(spool=spool, defaults={"server": server, "updated_at": now})
    if mark.server_id != server.pk:
        raise ForeignReport(f"The spool {spool} belongs to another server than the token's, {server.name}.")
    return mark


def _fresh(batch: RecordBatch, mark: SpoolMark) -> list[Record]:
    """Records above the mark, in order. Of two with one number the first counts."""
    fresh: dict[int, Record] = {}
    for record in sorted(batch.records, key=lambda record: record.number):
        if record.number > mark.stored_up_to:
            fresh.setdefault(record.number, record)
    return list(fresh.values())


def _store(server: Server, spool: UUID, fresh: Sequence[Record], now: datetime) -> tuple[int, Refused]:
    """(how many are new, what was refused) of records that the mark does not know."""
    readable, refused = _read(fresh)
    known = _look_up(server, [content for _, content in readable], refused)
    stored_before = _stored_ids(readable)
    readable = [(record, content) for record, content in readable if record.id not in stored_before]

    protocols = [
        records.protocol_row(record, spool, content, known, now)
        for record, content in readable
        if isinstance(content, Protocol)
    ]
    recovered = [
        records.recovered_row(record, content, known, now)
        for record, content in readable
        if isinstance(content, Recovered)
    ]
    unstored = writing.insert(protocols) | writing.insert(recovered)
    refused += [(record, unstored[record.id]) for record, _ in readable if record.id in unstored]
    writing.keep_refused(server, spool, refused, now)
    note(row for row in protocols if row.pk not in unstored)

    stored = [(record, content) for record, content in readable if record.id not in unstored]
    for record, content in stored:
        if isinstance(content, Interruption):
            accept_interruption(server, record.id, content, now)
    counting.count(known, stored, [record for record, _ in refused], now)
    outcomes = [StoredOutcome(record.id, content) for record, content in stored if isinstance(content, LetterOutcome)]
    hand_on(outcomes, [row for row in protocols if row.pk not in unstored], now)
    return len(stored), refused


def _read(fresh: Iterable[Record]) -> tuple[list[ReadRecord], Refused]:
    """Two records with one UUID are one: the first."""
    readable: dict[UUID, ReadRecord] = {}
    refused: Refused = []
    for record in fresh:
        try:
            readable.setdefault(record.id, (record, records.read(record)))
        except ContractError as error:
            refused.append((record, str(error)))
    return list(readable.values()), refused


def _stored_ids(readable: Iterable[ReadRecord]) -> set[UUID]:
    """Records that are here under another number: a spool that was copied, or a UUID that was used twice."""
    ids = [record.id for record, _ in readable]
    kinds: tuple[QuerySet[Any], ...] = (
        FailureProtocol.objects.all(),
        RecoveredMessage.objects.all(),
        InterruptionRow.objects.all(),
    )
    return {pk for rows in kinds for pk in rows.filter(pk__in=ids).values_list("pk", flat=True)}


def _look_up(server: Server, contents: Sequence[records.RunRecord], refused: Refused) -> Known:
    keys = {records.run_key(content) for content in contents}
    keys |= {key for record, _ in refused if (key := records.raw_run_key(record)) is not None}
    activations = {activation for activation, _ in keys}
    runs = Run.objects.filter(server=server, activation__in=activations)
    return Known(
        server=server,
        settings=LaunchSetting.objects.in_bulk({content.run.setting for content in contents}, field_name="key"),
        activations=frozenset(Activation.objects.filter(pk__in=activations).values_list("pk", flat=True)),
        runs={(run.activation_id, run.epoch): run for run in runs},
    )
