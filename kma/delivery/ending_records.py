"""The records that follow from how a handling ended. Pure: time and ids are given."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from contract.outcomes import RULES, Attempt, Breaker, Outcome, Settlement, is_last
from contract.records import (
    BreakerCounts,
    Closing,
    Content,
    MessageIdentity,
    Protocol,
    RecordRun,
    Recovered,
    ReplayOutcome,
    RunState,
)
from kma.handling.failure import FailureDetails
from kma.spool.journal import Totals

HANDLED, FAILED = "handled", "failed"
RAISED_LATER, NOTE, OPENED = 4, 5, 6  # numbers of records of a delivery of the mode CLIENT
INTERRUPTION = 7  # number of the record that follows from a failure's protocol when it trips the breaker


@dataclass(frozen=True, slots=True)
class FailureContext:
    """How one handling ended: what records need of it."""

    outcome: Outcome
    failure: FailureDetails | None
    attempt: int
    max_attempts: int
    successes_before: int
    process_id: int
    seconds: float
    at: datetime
    traceparent: str = ""
    disposition: str = ""
    stays: bool = False  # of an ordered subscription that tries it again without end


class RecordIds:
    """Of the protocols that handlings of one run may need: 8 random bytes, then a counter."""

    def __init__(self) -> None:
        self._prefix = os.urandom(8)
        self._number = 0

    def next(self) -> bytes:
        self._number += 1
        return self._prefix + self._number.to_bytes(8, "big")


def protocol(run: RecordRun, message: MessageIdentity, ending: FailureContext) -> Protocol:
    """The failure protocol. `ending.failure` is there."""
    rule = RULES[ending.outcome]
    failure = ending.failure
    assert failure is not None
    return Protocol(
        run=run,
        message=message,
        outcome=ending.outcome.value,
        exception_type=failure.exception_type,
        exception_text=failure.text,
        traceback=failure.traceback,
        fingerprint=failure.fingerprint,
        place=failure.place,
        occurred_at=ending.at,
        temporary=ending.outcome in (Outcome.TEMPORARY, Outcome.NOTED),
        counted=rule.breaker is Breaker.COUNT,
        last_attempt=_was_last(rule.attempt, ending),
        successes_before=ending.successes_before,
        process_id=ending.process_id,
        duration_seconds=round(ending.seconds, 6),
        traceparent=ending.traceparent,
        memory_peak_bytes=failure.memory_peak,
        disposition=ending.disposition,
    )


def _was_last(attempt: Attempt, ending: FailureContext) -> bool:
    """Whether the message is dead with this. After the death of a KMA it is not yet: who gets it next rejects
    it."""
    if ending.stays or attempt in (Attempt.BY_JOURNAL, Attempt.NONE):
        return False
    return attempt is Attempt.LAST or is_last(ending.attempt, ending.max_attempts)


def after_success(run: RecordRun, message: MessageIdentity, at: datetime) -> Iterator[Content]:
    """*Recovered* if it was redelivered, the letter's outcome if it was given back; mostly nothing."""
    if message.attempt > 1:
        yield Recovered(run, message, at)
    if message.replayed:
        yield ReplayOutcome(run, message, HANDLED, at)


def after_failure(run: RecordRun, message: MessageIdentity, ending: FailureContext) -> Iterator[Content]:
    """The protocol, and the letter's outcome if the message was given back."""
    yield protocol(run, message, ending)
    if message.replayed:
        accepted = RULES[ending.outcome].settlement is Settlement.ACCEPT
        yield ReplayOutcome(run, message, HANDLED if accepted else FAILED, ending.at)


def closing(
    run: RecordRun,
    totals: Totals,
    *,
    records: int,
    state: RunState,
    at: datetime,
    counts: BreakerCounts | None = None,
) -> Closing:
    return Closing(
        run=run,
        state=state,
        records=records,
        handled=totals.handled,
        failed=totals.failed,
        temporary=totals.temporary,
        restarts=totals.restarts,
        occurred_at=at,
        counts=counts,
    )
