"""Rows into the database, such that one that it does not take never costs the others."""

import json
from collections.abc import Sequence
from typing import Any, TypeVar
from uuid import UUID

import structlog
from django.db import DataError, IntegrityError, transaction

from console.database import bulk
from contract.messages import Record
from contract.wire import ContractError
from failures.intake.kinds.record_kind import BatchContext
from failures.intake.sanitize import fit, plain
from failures.models import FailureProtocol, RecoveredMessage, RefusedRecord

log = structlog.get_logger(__name__)

Refused = list[tuple[Record, str]]  # with the reason or the code
Row = TypeVar("Row", FailureProtocol, RecoveredMessage)

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
            unstored[row.pk] = f"the database refused it: {error}"
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
