"""What each end of a handling means: the table of the specification, section 2, as data."""

from dataclasses import dataclass
from enum import Enum


class Outcome(Enum):
    """How one handling of a message, or one standalone run, ended."""

    RETURNED = "returned"
    RAISED = "raised"
    TEMPORARY = "temporary"
    INVALID = "invalid"
    CHILD_DIED = "child_died"
    TIMED_OUT = "timed_out"
    ROLLED_BACK = "rolled_back"
    UNANSWERED = "unanswered"
    RAISED_AFTER_COMMIT = "raised_after_commit"
    RELEASED = "released"
    CONNECTION_LOST = "connection_lost"
    KMA_DIED = "kma_died"
    NOTED = "noted"  # no ending, but worth a protocol: something of the message could not be heeded


class Attempt(Enum):
    """What the handling costs the message."""

    NONE = "none"
    ONE = "one"
    LAST = "last"
    BROKER_DECIDES = "broker"
    BY_JOURNAL = "journal"


class Settlement(Enum):
    """What happens to the delivery. AFTER_LAST is the after-last-attempt rule of the setting."""

    ACCEPT = "accept"
    FAIL = "fail"
    AFTER_LAST = "after_last"
    UNSETTLED = "unsettled"


class AfterLast(Enum):
    """What a setting wants for a message whose last attempt failed, or that can never succeed."""

    DLQ = "dlq"
    EXCEPTION = "exception"
    DISCARD = "discard"
    STAY = "stay"  # of an ordered subscription alone: kept first and tried again without end


class Disposition(Enum):
    """What became of a message that has no attempt left. EXCEPTION and DISCARDED: the broker was asked to,
    after the protocol was stored; where it refused, a record of the number REFUSED follows
    (contract.records)."""

    DEAD = "dlq"
    EXCEPTION = "exception"
    DISCARDED = "discarded"


DISPOSITIONS = {
    AfterLast.DLQ: Disposition.DEAD,
    AfterLast.EXCEPTION: Disposition.EXCEPTION,
    AfterLast.DISCARD: Disposition.DISCARDED,
    # Where nothing is ordered nothing can stay.
    AfterLast.STAY: Disposition.DEAD,
}


class Breaker(Enum):
    """What the breaker of the setting on this server does with it."""

    RESET = "reset"
    COUNT = "count"
    IGNORE = "ignore"


@dataclass(frozen=True, slots=True)
class Rule:
    attempt: Attempt
    breaker: Breaker
    settlement: Settlement
    protocol: bool


RULES: dict[Outcome, Rule] = {
    Outcome.RETURNED: Rule(Attempt.NONE, Breaker.RESET, Settlement.ACCEPT, protocol=False),
    Outcome.RAISED: Rule(Attempt.ONE, Breaker.COUNT, Settlement.FAIL, protocol=True),
    Outcome.TEMPORARY: Rule(Attempt.ONE, Breaker.IGNORE, Settlement.FAIL, protocol=True),
    Outcome.INVALID: Rule(Attempt.LAST, Breaker.COUNT, Settlement.AFTER_LAST, protocol=True),
    Outcome.CHILD_DIED: Rule(Attempt.ONE, Breaker.COUNT, Settlement.FAIL, protocol=True),
    Outcome.TIMED_OUT: Rule(Attempt.ONE, Breaker.COUNT, Settlement.FAIL, protocol=True),
    Outcome.ROLLED_BACK: Rule(Attempt.ONE, Breaker.COUNT, Settlement.FAIL, protocol=True),
    Outcome.UNANSWERED: Rule(Attempt.ONE, Breaker.COUNT, Settlement.FAIL, protocol=True),
    Outcome.RAISED_AFTER_COMMIT: Rule(Attempt.NONE, Breaker.COUNT, Settlement.ACCEPT, protocol=True),
    Outcome.RELEASED: Rule(Attempt.NONE, Breaker.IGNORE, Settlement.UNSETTLED, protocol=False),
    Outcome.CONNECTION_LOST: Rule(
        Attempt.BROKER_DECIDES, Breaker.IGNORE, Settlement.UNSETTLED, protocol=False
    ),
    Outcome.KMA_DIED: Rule(Attempt.BY_JOURNAL, Breaker.IGNORE, Settlement.UNSETTLED, protocol=True),
    Outcome.NOTED: Rule(Attempt.NONE, Breaker.IGNORE, Settlement.UNSETTLED, protocol=True),
}


def dead_lettered_by_hand(outcome: str, disposition: str, *, last_attempt: bool) -> bool:
    """Whether this protocol says that a person sent the message that blocked an ordered subscription to the
    dead letters. What is only noted of one whose disposition the broker refused is not its last attempt."""
    return outcome == Outcome.NOTED.value and disposition == Disposition.DEAD.value and last_attempt


def attempt_number(delivery_count: int, known: int) -> int:
    """The number of the attempt that begins now, from 1: the broker's count or the known one, whichever is
    larger.

    `delivery_count` and `known` both count attempts that were made before.
    """
    return max(delivery_count, known) + 1


def is_last(attempt: int, max_attempts: int) -> bool:
    """Whether a failure of this attempt exhausts the message; `max_attempts` below 1 means without end."""
    return 0 < max_attempts <= attempt


def is_exhausted(attempt: int, max_attempts: int) -> bool:
    """Whether the message has no attempt left before this one begins: the KMA rejects it without handling
    it."""
    return 0 < max_attempts < attempt
