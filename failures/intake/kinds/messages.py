"""Records about single messages: the protocol of a failure, handled well after one, or left open until
somebody answers."""

import hashlib
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any
from uuid import UUID

from agents.acknowledgements.answers import Told, accept_reports, known_records
from contract.acknowledgements import read_id
from contract.fingerprint import fingerprint
from contract.messages import MAX_TRACEBACK
from contract.outcomes import Disposition, Outcome
from contract.records import AcknowledgementEnded, AcknowledgementOpened, MessageIdentity, Protocol, Recovered
from contract.typed import storable
from contract.wire import ContractError
from failures.error_groups.increments import note
from failures.hooks import protocols_stored
from failures.intake.kinds.record_kind import (
    BatchContext,
    Item,
    RecordKind,
    RunTotals,
    StoreResult,
    check_message,
)
from failures.intake.rows import insert_each
from failures.intake.sanitize import ends, fit, plain, whole
from failures.models import FailureProtocol, RecoveredMessage
from failures.models.protocol import OUTCOMES

LONGEST_FINGERPRINT = 64
_OUTCOMES = {outcome.value for outcome in OUTCOMES}
_DISPOSITIONS = {"", *(each.value for each in Disposition)}

# Every column has a value of its own: a new one is named here or fails.
COLUMNS = tuple(field.attname for field in FailureProtocol._meta.concrete_fields)
_PROTOCOL: Callable[..., FailureProtocol] = FailureProtocol


class Protocols(RecordKind[Protocol]):
    contents = (Protocol,)
    rows = FailureProtocol.objects.all()

    def check(self, content: Protocol) -> None:
        plain(content.message.properties)
        check_message(content.message)
        if content.outcome not in _OUTCOMES:
            raise ContractError("content.outcome", f"{fit(content.outcome, 60)!r} is not a failed outcome")
        if content.disposition not in _DISPOSITIONS:
            raise ContractError("content.disposition", f"{fit(content.disposition, 60)!r} is unknown")
        for name in ("process_id", "successes_before", "memory_peak_bytes"):
            whole(getattr(content, name), f"content.{name}")
        if not math.isfinite(content.duration_seconds):
            raise ContractError("content.duration_seconds", "must be a finite number")

    def columns(self, content: Protocol) -> dict[str, Any]:
        run = content.run
        return {
            "setting_key": fit(run.setting, 200),
            "activation_uuid": run.activation,
            "epoch": run.epoch,
            "server_name": fit(run.server, 63),
            "agent": fit(run.agent, 200),
            "agent_version": fit(run.agent_version, 200),
            "outcome": Outcome(content.outcome).value,
            "exception_type": fit(content.exception_type, 255),
            "exception_text": ends(content.exception_text, MAX_TRACEBACK),
            "traceback": ends(content.traceback, MAX_TRACEBACK),
            "fingerprint": _fingerprint(content),
            "place": fit(content.place, 300),
            "temporary": content.temporary,
            "counted": content.counted,
            "last_attempt": content.last_attempt,
            "successes_before": content.successes_before,
            **_message_columns(content.message),
            "process_id": content.process_id,
            "duration_seconds": content.duration_seconds,
            "traceparent": fit(content.traceparent, 200),
            "memory_peak_bytes": content.memory_peak_bytes,
            "disposition": content.disposition,
            "occurred_at": content.occurred_at,
        }

    def store(self, items: Sequence[Item[Protocol]], batch: BatchContext) -> StoreResult:
        rows = [self.row(item, batch) for item in items]
        unstored = insert_each(rows)
        stored = [row for row in rows if row.pk not in unstored]
        note(stored)
        if stored:
            batch.after_runs.append(partial(protocols_stored, stored, batch.now))
        return StoreResult(unstored)

    def row(self, item: Item[Protocol], batch: BatchContext) -> FailureProtocol:
        run = item.content.run
        # An activation of another setting is none of this one: the protocol would still name it when it is
        # removed.
        is_known = batch.is_of_setting(item.content)
        setting = batch.settings.get(run.setting)
        of_run = batch.runs.get((run.activation, run.epoch)) if is_known else None
        values: dict[str, Any] = {
            "id": item.record.id,
            "spool": batch.spool,
            "number": item.record.number,
            "setting_id": setting.pk if setting is not None else None,
            "activation_id": run.activation if is_known else None,
            "run_id": of_run.pk if of_run is not None else None,
            "server_id": batch.server.pk,
            "clock_skew_seconds": batch.skew,
            "received_at": batch.now,
            "verified": of_run is not None,
            **self.columns(item.content),
        }
        # By position: by name each field would be looked for among relations and properties too.
        return _PROTOCOL(*[values[name] for name in COLUMNS])

    def add(self, content: Protocol, totals: RunTotals) -> None:
        super().add(content, totals)
        if content.outcome != Outcome.NOTED.value:
            totals.temporary += content.temporary
            totals.failed += not content.temporary


def _fingerprint(protocol: Protocol) -> str:
    """Never blank, which would be a kind of its own; of one that is too long a digest of the whole tells it
    from others with its head."""
    given = storable(protocol.fingerprint).strip()
    if not given:
        traceback = ends(protocol.traceback, MAX_TRACEBACK)
        return fingerprint(protocol.exception_type, protocol.exception_text, traceback)
    if len(given) <= LONGEST_FINGERPRINT:
        return given
    digest = hashlib.sha256(given.encode()).hexdigest()[:16]
    return f"{given[: LONGEST_FINGERPRINT - len(digest) - 1]}…{digest}"


def _message_columns(message: MessageIdentity) -> dict[str, Any]:
    return {
        "message_key": fit(message.key, 255),
        "message_key_weak": message.weak,
        "queue": fit(message.queue, 300),
        "destination": fit(message.destination, 300),
        "attempt": message.attempt,
        "delivery_count": message.delivery_count,
        "body_digest": fit(message.body_digest, 100),
        "body_size": message.body_size,
        "properties": plain(message.properties),
        "given_back": message.replayed,
        "letter_queue": fit(message.dead_letter_queue, 300),
        "letter_id": message.dead_letter_id,
        "durable": message.durable,
    }


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
            raise ContractError("content.acknowledgement", "belongs to another run")

    def repeated(self, items: Sequence[Item[Told]], batch: BatchContext) -> set[UUID]:
        return known_records([item.record.id for item in items])

    def store(self, items: Sequence[Item[Told]], batch: BatchContext) -> StoreResult:
        accept_reports(batch.server, [(item.record.id, item.content) for item in items], batch.now)
        return StoreResult()
