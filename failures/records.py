"""Records of a spool, checked, and the rows that they become. Raises ContractError for what cannot be
stored."""

import uuid
from collections.abc import Iterator
from typing import Any

from contract import wire
from contract.errors import ContractError
from contract.messages import (
    KINDS,
    AcknowledgementEnded,
    AcknowledgementOpened,
    Closing,
    Interruption,
    Protocol,
    Record,
    RecordRun,
    Recovered,
    ReplayOutcome,
)
from failures.intake.kinds.messages import Acknowledgements, RecoveredMessages
from failures.intake.kinds.protocols import Protocols
from failures.intake.kinds.record_kind import RunKey, check_message
from failures.intake.kinds.runs import Closings, Interruptions
from failures.intake.sanitize import fit, whole

RESULTS = ("handled", "failed")
PROTOCOLS, RECOVERED, ACKNOWLEDGEMENTS = Protocols(), RecoveredMessages(), Acknowledgements()
INTERRUPTIONS, CLOSINGS = Interruptions(), Closings()

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
        PROTOCOLS.check(content)
    elif isinstance(content, Recovered):
        RECOVERED.check(content)
    elif isinstance(content, ReplayOutcome):
        check_message(content.message)
        if content.result not in RESULTS:
            raise ContractError("content.result", f"must be one of {', '.join(RESULTS)}")
    elif isinstance(content, Interruption):
        INTERRUPTIONS.check(content)
    elif isinstance(content, (AcknowledgementOpened, AcknowledgementEnded)):
        ACKNOWLEDGEMENTS.check(content)
    elif isinstance(content, Closing):
        CLOSINGS.check(content)
    return content


def unknown(record: Record) -> Iterator[str]:
    """Names of fields that are ignored, with their kind."""
    kind = KINDS.get(record.kind)
    if kind is not None:
        yield from wire.unknown(kind, record.content, record.kind)


def _check_run(run: RecordRun) -> None:
    whole(run.epoch, "content.run.epoch")


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
