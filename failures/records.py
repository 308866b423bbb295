"""Records of a spool, checked, and the rows that they become. Raises ContractError for what cannot be
stored."""

import hashlib
import math
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from agents.models import LaunchSetting, Run, Server
from contract import wire
from contract.acknowledging import read_id
from contract.breaker import TripReason
from contract.errors import ContractError
from contract.fingerprint import fingerprint
from contract.messages import (
    KINDS,
    MAX_EVIDENCE,
    MAX_TRACEBACK,
    AcknowledgementEnded,
    AcknowledgementOpened,
    Closing,
    Interruption,
    MessageIdentity,
    Protocol,
    Record,
    RecordRun,
    Recovered,
    ReplayOutcome,
)
from contract.outcomes import Disposition, Outcome
from contract.text import storable
from failures.intake.sanitize import ends, fit, plain, whole
from failures.models import FailureProtocol, RecoveredMessage
from failures.models.protocol import OUTCOMES

RESULTS = ("handled", "failed")
REASONS = tuple(reason.value for reason in TripReason)
BIGGEST_COUNT = 2**31 - 1
LONGEST_FINGERPRINT = 64

# Every column has a value of its own: a new one is named here or fails.
COLUMNS = tuple(field.attname for field in FailureProtocol._meta.concrete_fields)
_PROTOCOL: Callable[..., FailureProtocol] = FailureProtocol

RunKey = tuple[uuid.UUID, int]
RunRecord = (
    Protocol
    | Recovered
    | ReplayOutcome
    | Closing
    | Interruption
    | AcknowledgementOpened
    | AcknowledgementEnded
)
ReadRecord = tuple[Record, RunRecord]


@dataclass(frozen=True, slots=True)
class Known:
    """What of the records' names the MA knows, looked up once per batch. `activations`: {id: key of its
    setting}."""

    server: Server
    settings: Mapping[str, LaunchSetting] = field(default_factory=dict)
    activations: Mapping[uuid.UUID, str] = field(default_factory=dict)
    runs: Mapping[RunKey, Run] = field(default_factory=dict)


def run_key(content: RunRecord) -> RunKey:
    return content.run.activation, content.run.epoch


def raw_run_key(record: Record) -> RunKey | None:
    """The run that a refused record speaks of, if that much of it can be read."""
    run = record.content.get("run")
    if not isinstance(run, dict):
        return None
    try:
        return uuid.UUID(str(run.get("activation"))), whole(int(run.get("epoch", "")), "epoch")
    except (ValueError, TypeError):
        return None


def read(record: Record) -> RunRecord:
    """The content of a record, checked against its kind and against what the columns take."""
    kind = KINDS.get(record.kind)
    if kind is None:
        raise ContractError("kind", f"{fit(record.kind, 60)!r} is not known")
    content = wire.load(kind, record.content, "content")
    _check_run(content.run)
    if isinstance(content, Protocol):
        plain(content.message.properties)
    if isinstance(content, (Protocol, Recovered, ReplayOutcome)):
        _check_message(content.message)
    if isinstance(content, Protocol):
        _check_protocol(content)
    elif isinstance(content, ReplayOutcome) and content.result not in RESULTS:
        raise ContractError("content.result", f"must be one of {', '.join(RESULTS)}")
    elif isinstance(content, Interruption):
        _check_interruption(content)
    elif isinstance(content, (AcknowledgementOpened, AcknowledgementEnded)):
        _check_delivery(content)
    elif isinstance(content, Closing):
        for name in ("records", "handled", "failed", "temporary", "restarts"):
            whole(getattr(content, name), f"content.{name}")
    return content


def unknown(record: Record) -> Iterator[str]:
    """Names of fields that are ignored, with their kind."""
    kind = KINDS.get(record.kind)
    if kind is not None:
        yield from wire.unknown(kind, record.content, record.kind)


def _check_run(run: RecordRun) -> None:
    whole(run.epoch, "content.run.epoch")


def _check_message(message: MessageIdentity) -> None:
    for name in ("delivery_count", "attempt", "body_size"):
        whole(getattr(message, name), f"content.message.{name}")
    if message.dead_letter_id is not None:
        whole(message.dead_letter_id, "content.message.dead_letter_id")


def _check_protocol(protocol: Protocol) -> None:
    if protocol.outcome not in {outcome.value for outcome in OUTCOMES}:
        raise ContractError("content.outcome", f"{fit(protocol.outcome, 60)!r} leaves no protocol")
    if protocol.disposition not in {"", *(each.value for each in Disposition)}:
        raise ContractError("content.disposition", f"{fit(protocol.disposition, 60)!r} is not known")
    whole(protocol.process_id, "content.process_id")
    whole(protocol.successes_before, "content.successes_before")
    whole(protocol.memory_peak_bytes, "content.memory_peak_bytes")
    if not math.isfinite(protocol.duration_seconds):
        raise ContractError("content.duration_seconds", "must be a finite number")


def _check_delivery(content: AcknowledgementOpened | AcknowledgementEnded) -> None:
    """A server speaks of the deliveries of its own runs only."""
    try:
        parts = read_id(content.acknowledgement)
    except ValueError as error:
        raise ContractError("content.acknowledgement", str(error)) from None
    run = content.run
    if (parts.server, parts.activation, parts.epoch) != (run.server, run.activation, run.epoch):
        raise ContractError("content.acknowledgement", "is of another run")


def _check_interruption(interruption: Interruption) -> None:
    if interruption.reason not in REASONS:
        raise ContractError("content.reason", f"must be one of {', '.join(REASONS)}")
    if len(interruption.evidence) > MAX_EVIDENCE:
        raise ContractError("content.evidence", f"holds more than {MAX_EVIDENCE} ids")
    whole(interruption.max_failures, "content.max_failures", least=1, most=BIGGEST_COUNT)
    for name in ("same", "any"):
        whole(getattr(interruption.counts, name), f"content.counts.{name}", most=BIGGEST_COUNT)


def protocol_row(
    record: Record,
    spool: uuid.UUID,
    protocol: Protocol,
    known: Known,
    now: datetime,
    skew: float | None = None,
) -> FailureProtocol:
    """`skew`: seconds by which the KMA's clock was ahead of ours when it sent the record."""
    run = protocol.run
    # An activation of another setting is none of this one: the protocol would still name it when it is
    # removed.
    is_known = known.activations.get(run.activation) == run.setting
    setting = known.settings.get(run.setting)
    of_run = known.runs.get((run.activation, run.epoch)) if is_known else None
    values: dict[str, Any] = {
        "id": record.id,
        "spool": spool,
        "number": record.number,
        "setting_id": setting.pk if setting is not None else None,
        "activation_id": run.activation if is_known else None,
        "run_id": of_run.pk if of_run is not None else None,
        "server_id": known.server.pk,
        "clock_skew_seconds": skew,
        "received_at": now,
        "verified": of_run is not None,
        **protocol_columns(protocol),
    }
    # By position: by name each field would be looked for among relations and properties too.
    return _PROTOCOL(*[values[name] for name in COLUMNS])


def protocol_columns(protocol: Protocol) -> dict[str, Any]:
    """What the row says of what its KMA said: the same record has the same, whenever and however it comes."""
    run = protocol.run
    return {
        "setting_key": fit(run.setting, 200),
        "activation_uuid": run.activation,
        "epoch": run.epoch,
        "server_name": fit(run.server, 63),
        "agent": fit(run.agent, 200),
        "agent_version": fit(run.agent_version, 200),
        "outcome": Outcome(protocol.outcome).value,
        "exception_type": fit(protocol.exception_type, 255),
        "exception_text": ends(protocol.exception_text, MAX_TRACEBACK),
        "traceback": ends(protocol.traceback, MAX_TRACEBACK),
        "fingerprint": _fingerprint(protocol),
        "place": fit(protocol.place, 300),
        "temporary": protocol.temporary,
        "counted": protocol.counted,
        "last_attempt": protocol.last_attempt,
        "successes_before": protocol.successes_before,
        **_message_columns(protocol.message),
        "process_id": protocol.process_id,
        "duration_seconds": protocol.duration_seconds,
        "traceparent": fit(protocol.traceparent, 200),
        "memory_peak_bytes": protocol.memory_peak_bytes,
        "disposition": protocol.disposition,
        "occurred_at": protocol.occurred_at,
    }


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


def outcome_columns(outcome: ReplayOutcome) -> dict[str, Any]:
    """Of the row that the package above keeps of a letter's outcome: see `failures.sinks`."""
    run, message = outcome.run, outcome.message
    return {
        "setting_key": fit(run.setting, 200),
        "message_key": fit(message.key, 255),
        "letter_queue": fit(message.dead_letter_queue, 300),
        "letter_id": message.dead_letter_id,
        "result": outcome.result,
        "server_name": fit(run.server, 63),
        "activation_uuid": run.activation,
        "attempt": message.attempt,
        "occurred_at": outcome.occurred_at,
    }


def recovered_row(
    record: Record, recovered: Recovered, now: datetime, *, verified: bool = True
) -> RecoveredMessage:
    return RecoveredMessage(id=record.id, received_at=now, verified=verified, **recovered_columns(recovered))


def recovered_columns(recovered: Recovered) -> dict[str, Any]:
    return {
        "setting_key": fit(recovered.run.setting, 200),
        "activation_uuid": recovered.run.activation,
        "server_name": fit(recovered.run.server, 63),
        "message_key": fit(recovered.message.key, 255),
        "attempt": recovered.message.attempt,
        "occurred_at": recovered.occurred_at,
    }
