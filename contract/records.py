"""What a KMA's records say: their contents by kind. Version and how they travel: contract.messages."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Any
from uuid import UUID

from contract.acknowledgements import EndState
from contract.reasons import Reason


class RunState(Enum):
    """A run as its KMA sees it. `interrupted`: its breaker tripped; it is not taken up again under this
    epoch."""

    STARTING = "starting"
    RUNNING = "running"
    DRAINING = "draining"
    FINISHED = "finished"
    FAILED = "failed"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class BreakerCounts:
    """`contract.breaker.Counts` on the wire; `marks` only of a setting where each message counts once."""

    same_type: str = ""
    same: int = 0
    any: int = 0
    marks: tuple[str, ...] = ()


NO_COUNTS = BreakerCounts()


@dataclass(frozen=True, slots=True)
class RecordRun:
    """The run that a record speaks of."""

    setting: str
    activation: UUID
    epoch: int
    server: str
    agent: str
    agent_version: str = ""


@dataclass(frozen=True, slots=True)
class MessageIdentity:
    """The message a record speaks of. `replayed`: it came from `dead_letter_queue`, where it was the dead
    letter `dead_letter_id` (the broker's id). Empty for what is not known or for a standalone agent.
    `durable` False: the producer sent it non-persistent, and it is gone when the broker restarts."""

    key: str = ""
    weak: bool = False
    queue: str = ""
    destination: str = ""
    delivery_count: int = 0
    attempt: int = 1
    body_digest: str = ""
    body_size: int = 0
    properties: Mapping[str, Any] = field(default_factory=dict)
    replayed: bool = False
    dead_letter_queue: str = ""
    dead_letter_id: int | None = None
    durable: bool = True


@dataclass(frozen=True, slots=True)
class Protocol:
    """One exception. `temporary` and `counted` by the outcome table; `successes_before` as in the
    specification. `memory_peak_bytes`: the most that its process held in memory until then, 0 where nobody
    could measure it. `disposition`: of a message without an attempt left, by contract.outcomes.Disposition;
    else empty."""

    run: RecordRun
    message: MessageIdentity
    outcome: str
    exception_type: str
    exception_text: str
    traceback: str
    fingerprint: str
    place: str
    occurred_at: datetime
    temporary: bool = False
    counted: bool = True
    last_attempt: bool = False
    successes_before: int = 0
    process_id: int = 0
    duration_seconds: float = 0.0
    traceparent: str = ""
    memory_peak_bytes: int = 0
    disposition: str = ""


@dataclass(frozen=True, slots=True)
class Recovered:
    """A redelivered message was handled well."""

    run: RecordRun
    message: MessageIdentity
    occurred_at: datetime


@dataclass(frozen=True, slots=True)
class ReplayOutcome:
    """A message that was replayed from a dead-letter queue was handled (`handled`) or failed again
    (`failed`)."""

    run: RecordRun
    message: MessageIdentity
    result: str
    occurred_at: datetime


@dataclass(frozen=True, slots=True)
class Closing:
    """The last record of a run in its spool: `records` were spooled for it before this one. `counts`: with
    which the breaker of the run ended (None: not told), for the next activation of a DELAYED setting."""

    run: RecordRun
    state: RunState
    records: int
    handled: int
    failed: int
    temporary: int
    restarts: int
    occurred_at: datetime
    counts: BreakerCounts | None = None


@dataclass(frozen=True, slots=True)
class Interruption:
    """The KMA gave the run up: its breaker, with the limit `max_failures`, tripped for `reason`
    (contract.breaker.TripReason).

    `evidence`: ids of the protocols that counted, oldest first, at most MAX_EVIDENCE. It is spooled with the
    last of them; handlers at hand may still add protocols before the closing record.
    """

    run: RecordRun
    counts: BreakerCounts
    occurred_at: datetime
    reason: str = ""
    max_failures: int = 0
    evidence: tuple[UUID, ...] = ()


@dataclass(frozen=True, slots=True)
class AcknowledgementOpened:
    """A handling returned without an answer: its delivery stays open and waits for one, until `due_at` (None:
    without end) which is `timeout_seconds` (0 = none) after `occurred_at`. `jms_message_id`: the producer's,
    as text."""

    run: RecordRun
    acknowledgement: str
    message: MessageIdentity
    jms_message_id: str
    occurred_at: datetime
    due_at: datetime | None = None
    timeout_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class AcknowledgementEnded:
    """A delivery waits for no answer any more. It comes without an AcknowledgementOpened where the MA passed
    an answer on that this server can do nothing with."""

    run: RecordRun
    acknowledgement: str
    state: EndState
    reason: Reason | None
    occurred_at: datetime


@dataclass(frozen=True, slots=True)
class MinuteFigures:
    """Handlings of a run that ended between `occurred_at` and `until`: a minute by the server's clock, or
    longer where records could not be sent meanwhile. Counts add up; every ended handling is in one record.

    `succeeded`, `failed`, `temporary`: handlings by how they ended; `failed` includes those that died with
    their process. `recovered`: successes of a message that had failed before. `bytes`: of the encoded
    messages. `busy_seconds`: sum of the handlings' durations, `processing` their histogram, both without
    handlings that died with their KMA: how long those took, nobody knows. `critical` is the histogram
    of the time from the producer's timestamp to the end of a success (contract.histogram.packed);
    `no_timestamp`: successes without one, `before_sent`: those whose timestamp lies after their end, by
    another clock; both are in no `critical`. `concurrency`: handlings that may run at once. `children_bytes`:
    the most memory that its processes held together, 0 where nobody could measure it. `spool_seconds`: how
    long it took no messages because the spool was full."""

    run: RecordRun
    occurred_at: datetime
    until: datetime
    succeeded: int = 0
    failed: int = 0
    temporary: int = 0
    recovered: int = 0
    bytes: int = 0
    busy_seconds: float = 0.0
    processing: str = ""
    critical: str = ""
    no_timestamp: int = 0
    before_sent: int = 0
    concurrency: int = 0
    children_bytes: int = 0
    spool_seconds: float = 0.0


Content = (
    Protocol
    | Recovered
    | ReplayOutcome
    | Closing
    | Interruption
    | AcknowledgementOpened
    | AcknowledgementEnded
    | MinuteFigures
)

KINDS: dict[str, type[Content]] = {
    "protocol": Protocol,
    "recovered": Recovered,
    "replay_outcome": ReplayOutcome,
    "closing": Closing,
    "interruption": Interruption,
    "acknowledgement_opened": AcknowledgementOpened,
    "acknowledgement_ended": AcknowledgementEnded,
    "minute_figures": MinuteFigures,
}
KIND_OF: dict[type[Content], str] = {kind: name for name, kind in KINDS.items()}

# Number, among the records of one handling, of the one which says that the broker refused its disposition.
REFUSED = 3


def derived_id(record: UUID, number: int) -> UUID:
    """The id of record `number` of one handling, from the slot's record id, which is that of record 0: a
    record made twice has one id."""
    return UUID(int=record.int ^ (number << 120))
