"""What the packages above want to hear of stored facts. They register when their app is ready.

A sink is called inside the intake's transaction: it must be short, and what it raises rolls the whole batch
back.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from contract.messages import ReplayOutcome
from failures.models import FailureProtocol


@dataclass(frozen=True, slots=True)
class StoredOutcome:
    """The outcome of a message that was given back, and the id of its record. Not `verified`: it settles no
    replay."""

    id: UUID
    outcome: ReplayOutcome
    verified: bool = True


LetterOutcomeSink = Callable[[Sequence[StoredOutcome], datetime], None]
# Rows of the outcomes with these ids, with the columns of `records.outcome_columns`.
KnownOutcomes = Callable[[Collection[UUID]], Mapping[UUID, Any]]
ProtocolSink = Callable[[Sequence[FailureProtocol], datetime], None]

_letter_outcome_sinks: list[LetterOutcomeSink] = []
_known_outcomes: list[KnownOutcomes] = []
_protocol_sinks: list[ProtocolSink] = []


def register_letter_outcome(sink: LetterOutcomeSink) -> None:
    if sink not in _letter_outcome_sinks:
        _letter_outcome_sinks.append(sink)


def register_known_outcomes(known: KnownOutcomes) -> None:
    if known not in _known_outcomes:
        _known_outcomes.append(known)


def known_outcomes(ids: Collection[UUID]) -> dict[UUID, Any]:
    return {pk: row for known in _known_outcomes for pk, row in known(ids).items()}


def register_protocols(sink: ProtocolSink) -> None:
    if sink not in _protocol_sinks:
        _protocol_sinks.append(sink)


def hand_on(outcomes: Sequence[StoredOutcome], protocols: Sequence[FailureProtocol], now: datetime) -> None:
    if protocols:
        for hear_protocols in _protocol_sinks:
            hear_protocols(protocols, now)
    if outcomes:
        for hear_outcomes in _letter_outcome_sinks:
            hear_outcomes(outcomes, now)
