"""What a KMA and the MA say to each other, version 4. JSON by `contract.wire`; instants in UTC, durations in
seconds.

A *fact* (Protocol, Recovered, ReplayOutcome, Closing, AcknowledgementOpened, AcknowledgementEnded) is stored
whatever its epoch. A *claim to the present* (RunReport, Interruption) of an old epoch has no effect. Both are
answered 2xx.

Version 4 reports reasons as codes with parameters and renamed fields; `contract.version_3` has both ways. New
fields have defaults. An MA understands its own version and the one before: the MA is upgraded first.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Any
from uuid import UUID

from contract.acknowledgements import Action
from contract.names import ACKNOWLEDGMENT_TIMEOUT
from contract.outcomes import AfterLast
from contract.reasons import Reason
from contract.records import (
    NO_COUNTS,
    BreakerCounts,
    RunState,
)
from contract.typed import storable
from contract.wire import UnsupportedVersion

VERSION = 4
OLDEST_VERSION = VERSION - 1
MAX_RECORDS = 500
MAX_BATCH_BYTES = 16 * 1024 * 1024
MAX_TRACEBACK = 64 * 1024
MAX_EVIDENCE = 100


def check_version(version: int) -> None:
    """Raises UnsupportedVersion for what this side does not understand."""
    if not OLDEST_VERSION <= version <= VERSION:
        raise UnsupportedVersion(
            "version", f"this MA supports versions {OLDEST_VERSION} to {VERSION}, not {version}"
        )


class Mode(Enum):
    """Acknowledgement mode of a message agent."""

    TRANSACTED = "TRANSACTED"
    AUTO = "AUTO"
    DUPS_OK = "DUPS_OK"
    CLIENT = "CLIENT"


class AgentKind(Enum):
    """A standalone agent runs once per activation, a message agent once per message."""

    MESSAGE = "message"
    STANDALONE = "standalone"


# -- desired state: MA -> KMA --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class GiveUpRequest:
    """A person wants the message that blocks an ordered subscription among the dead letters: the one with
    this `BlockedMessage.digest` that waits after this attempt. `number` grows with each such wish."""

    number: int
    digest: str
    attempt: int


@dataclass(frozen=True, slots=True)
class BlockedMessage:
    """The message that failed and blocks its ordered subscription. `retry_seconds` between its attempts;
    None: when a person asks."""

    key: str
    attempt: int
    retry_seconds: float | None = None

    @property
    def digest(self) -> str:
        """Hexadecimal SHA-256 of the key as the wire has it: names it in a wish that outlives the message,
        without its text."""
        return hashlib.sha256(storable(self.key).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class DesiredRun:
    """One run that the MA wants on this server. What is not listed is to be stopped.

    `destination` and `queue` are empty for a standalone agent. `limit_messages`: the run ends by itself after
    so many (0 = no limit). `trial_first`: one message at a time until the first success, and a counted
    failure before it trips. `restart_seconds`: a standalone agent that raised is started again after so long
    (0 = its run has failed). `lease_seconds`: a standalone agent stops when the MA has not answered for so
    long (0 = it goes on).

    CLIENT: `acknowledgement_timeout_seconds` begins when a handling returned unanswered (0 = none); a message
    overrides it by its integer property `acknowledgement_property`, in seconds. `acknowledgement_secret`:
    hexadecimal, of this run, for its acknowledgement ids. The two destinations get a small event for each
    commit or rollback ("" = none).

    `ordered`: one message at a time over all servers, the failed one first: it is tried again
    `blocked_seconds` after its failure (0 at once, -1 when `retries_requested` changes; that always tries at
    once). `give_up_request`: the latest wish of that kind; only one that is new to the run counts.

    DUPS_OK: acceptances wait until there are `dups_ok_messages` of them or the first waited
    `dups_ok_seconds`.

    `after_last`: what becomes of a message without an attempt left; EXCEPTION: a copy goes to
    `exception_destination`.

    `duplicate_key`: how repeats are known (contract.message_key), within `duplicate_window_seconds`.
    """

    activation: UUID
    epoch: int
    setting: str
    agent: str
    destination: str
    queue: str
    mode: Mode = Mode.TRANSACTED
    concurrency: int = 1
    max_attempts: int = 10
    max_failures: int = 10
    grace_seconds: float = 30.0
    handling_timeout_seconds: float = 0.0
    transaction_timeout_seconds: float = 300.0
    isolate: bool = False
    child_memory_mb: int = 0
    parameters: Mapping[str, Any] = field(default_factory=dict)
    known_attempts: Mapping[str, int] = field(default_factory=dict)
    masked_properties: tuple[str, ...] = ()
    carried_counts: "BreakerCounts | None" = None
    kind: AgentKind = AgentKind.MESSAGE
    count_message_once: bool = False
    trial_first: bool = False
    limit_messages: int = 0
    restart_seconds: float = 0.0
    lease_seconds: float = 0.0
    acknowledgement_timeout_seconds: float = 0.0
    acknowledgement_property: str = ACKNOWLEDGMENT_TIMEOUT
    committed_destination: str = ""
    rolled_back_destination: str = ""
    acknowledgement_secret: str = field(default="", repr=False)
    dups_ok_messages: int = 100
    dups_ok_seconds: float = 1.0
    after_last: AfterLast = AfterLast.DLQ
    exception_destination: str = ""
    duplicate_key: str = ""
    duplicate_window_seconds: float = 86400.0
    ordered: bool = False
    blocked_seconds: float = 5.0
    retries_requested: int = 0
    give_up_request: GiveUpRequest | None = None


@dataclass(frozen=True, slots=True)
class DesiredState:
    """Everything that one server shall run. `version` changes exactly when the content does."""

    server: str
    version: str
    runs: tuple[DesiredRun, ...] = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """How somebody answered a delivery of the mode CLIENT."""

    acknowledgement: str
    action: Action


@dataclass(frozen=True, slots=True)
class HeartbeatReply:
    """`desired` is None when the KMA already has `desired_version`. `answers`: every one for this server that
    is pending, again and again until its AcknowledgementEnded is stored. `spool_stored_up_to` where that is
    less than the KMA was told: what is above has to come again."""

    now: datetime
    desired_version: str
    desired: DesiredState | None = None
    version: int = VERSION
    answers: tuple[Answer, ...] = ()
    spool_stored_up_to: int | None = None


# -- heartbeat: KMA -> MA ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RunReport:
    """Totals since this run (activation and epoch) started on this server. `repeats` were accepted
    unhandled."""

    activation: UUID
    epoch: int
    setting: str
    state: RunState
    handled: int = 0
    failed: int = 0
    temporary: int = 0
    restarts: int = 0
    in_progress: int = 0
    connected: bool = False
    counts: BreakerCounts = NO_COUNTS
    problems: tuple[Reason, ...] = ()
    repeats: int = 0
    blocked: BlockedMessage | None = None


@dataclass(frozen=True, slots=True)
class OfferedAgent:
    """An agent registered on this KMA."""

    name: str
    kind: str
    version: str = ""
    summary: str = ""


@dataclass(frozen=True, slots=True)
class SpoolReport:
    """What waits in the spool. `full`: the KMA takes no more messages until the MA has taken records. `after`
    as in a `RecordBatch`, of the spool `id`."""

    rows: int = 0
    bytes: int = 0
    limit_bytes: int = 0
    full: bool = False
    oldest_at: datetime | None = None
    id: UUID | None = None
    after: int | None = None


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """`boot` is a UUID per start of the KMA process; `sent_at` by the KMA's clock."""

    server: str
    boot: UUID
    sent_at: datetime
    kma_version: str
    desired_version: str = ""
    agents: tuple[OfferedAgent, ...] = ()
    runs: tuple[RunReport, ...] = ()
    spool: SpoolReport = SpoolReport()
    problems: tuple[Reason, ...] = ()
    version: int = VERSION


# -- records: KMA -> spool -> MA -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Record:
    """One row of a spool: `number` grows by one within the spool, `id` is the record's own. `content` by
    `kind`."""

    number: int
    id: UUID
    kind: str
    content: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RecordBatch:
    """`POST /api/v1/protocols/`: at most MAX_RECORDS records of one spool, in order. `sent_at` by the KMA's
    clock.

    `after`: the highest number that the MA has stored, as the KMA was told, where it can send some of that
    again. An MA that has less than this stores nothing of the batch and says what it has: the KMA goes on
    behind that. `first`: the first number of this spool; not 1 where it was put back from a copy and goes on
    under a new id.
    """

    server: str
    spool: UUID
    records: tuple[Record, ...]
    version: int = VERSION
    sent_at: datetime | None = None
    after: int | None = None
    first: int = 1


@dataclass(frozen=True, slots=True)
class Refusal:
    number: int
    reason: str


@dataclass(frozen=True, slots=True)
class RecordReceipt:
    """The answer after the commit. The KMA deletes every row up to `stored_up_to`; a refused one never
    blocks.

    `new`, `known` and the refusals add up to the batch. `known_numbers` are the known ones; `conflicts` those
    of them whose id or number had come with other content, which is kept beside it. `superseded` are new ones
    without effect: claims to the present by an old epoch.
    """

    stored_up_to: int
    new: int = 0
    known: int = 0
    refused: tuple[Refusal, ...] = ()
    version: int = VERSION
    known_numbers: tuple[int, ...] = ()
    conflicts: tuple[int, ...] = ()
    superseded: tuple[int, ...] = ()
