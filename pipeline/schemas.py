"""What the archive holds, kind by kind: columns in their order, all nullable.

Times are instants (UTC), a uuid is its canonical text, JSON is text. A column that a later version adds comes
last, and is null in what was archived before it.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql.types import (
    BooleanType,
    DataType,
    DoubleType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

# Of every kind together. 2: `disposition` and `durable` of protocols.
VERSION = 2

TEXT, WHOLE, REAL, YES_NO, INSTANT = StringType(), LongType(), DoubleType(), BooleanType(), TimestampType()


@dataclass(frozen=True, slots=True)
class Kind:
    """`key`: the columns that name a row. `received`: by which it is archived, `occurred`: by which readers
    leave files out. `newest`: a row may change after it was archived and then comes again in a later block;
    readers take the last one."""

    name: str
    schema: StructType
    key: tuple[str, ...]
    received: str
    occurred: str
    newest: bool = False


def _columns(**types: DataType) -> StructType:
    return StructType([StructField(name, kind, nullable=True) for name, kind in types.items()])


PROTOCOLS = Kind(
    "protocols",
    _columns(
        id=TEXT, spool=TEXT, number=WHOLE, setting_key=TEXT, activation=TEXT, epoch=WHOLE, server=TEXT,
        agent=TEXT,
        agent_version=TEXT, outcome=TEXT, exception_type=TEXT, exception_text=TEXT, traceback=TEXT,
        fingerprint=TEXT,
        place=TEXT, temporary=YES_NO, counted=YES_NO, last_attempt=YES_NO, successes_before=WHOLE,
        message_key=TEXT,
        message_key_weak=YES_NO, queue=TEXT, destination=TEXT, attempt=WHOLE, delivery_count=WHOLE,
        body_digest=TEXT,
        body_size=WHOLE, properties=TEXT, given_back=YES_NO, duration_seconds=REAL, memory_peak_bytes=WHOLE,
        clock_skew_seconds=REAL, traceparent=TEXT, occurred_at=INSTANT, received_at=INSTANT,
        disposition=TEXT, durable=YES_NO,
    ),
    key=("id",),
    received="received_at",
    occurred="occurred_at",
)  # fmt: skip

RECOVERED = Kind(
    "recovered",
    _columns(
        id=TEXT, setting_key=TEXT, activation=TEXT, server=TEXT, message_key=TEXT, attempt=WHOLE,
        occurred_at=INSTANT,
        received_at=INSTANT,
    ),
    key=("id",),
    received="received_at",
    occurred="occurred_at",
)  # fmt: skip

# `breaker_m` and `mode` (any | many) as the setting said when it began, null of those from before that was
# kept; `launched_with`: all that it said (JSON).
ACTIVATIONS = Kind(
    "activations",
    _columns(
        id=TEXT, setting_key=TEXT, state=TEXT, trigger=TEXT, well=YES_NO, reason=TEXT, started_at=INSTANT,
        ended_at=INSTANT, breaker_m=WHOLE, mode=TEXT, launched_with=TEXT,
    ),
    key=("id",),
    received="ended_at",
    occurred="started_at",
    newest=True,
)  # fmt: skip

RUNS = Kind(
    "runs",
    _columns(
        activation=TEXT, setting_key=TEXT, server=TEXT, epoch=WHOLE, state=TEXT, handled=WHOLE, failed=WHOLE,
        temporary=WHOLE, recovered=WHOLE, restarts=WHOLE, created_at=INSTANT, closed_at=INSTANT,
    ),
    key=("activation", "server", "epoch"),
    received="closed_at",
    occurred="created_at",
    newest=True,
)  # fmt: skip

# `server`: of the first interruption that led to it, null where none did. `enabled_again_at`: null while it
# is open.
TRIPS = Kind(
    "trips",
    _columns(
        id=WHOLE, setting_key=TEXT, activation=TEXT, server=TEXT, reason=TEXT, exception_type=TEXT,
        at=INSTANT,
        enabled_again_at=INSTANT, reopened=WHOLE,
    ),
    key=("id",),
    received="at",
    occurred="at",
    newest=True,
)  # fmt: skip

# `properties`: [{"name", "type", "value"}], without types and values of those that are masked. `body`: null
# unless bodies are archived.
LETTERS = Kind(
    "letters",
    _columns(
        id=WHOLE, queue=TEXT, orig_message_id=WHOLE, setting_key=TEXT, message_key=TEXT, fingerprint=TEXT,
        exception_type=TEXT, place=TEXT, server=TEXT, activation=TEXT, agent_version=TEXT, size=WHOLE,
        properties=TEXT,
        body=TEXT, delivery_count=WHOLE, chapter=WHOLE, protocol_at=INSTANT, seen_at=INSTANT,
    ),
    key=("id",),
    received="seen_at",
    occurred="seen_at",
    newest=True,
)  # fmt: skip

# Letters that were given back, once it is known what became of them: handled, failed_again, dead_again.
REPLAYS = Kind(
    "replays",
    _columns(
        id=WHOLE, job=TEXT, action=TEXT, letter=WHOLE, setting_key=TEXT, target_key=TEXT, message_key=TEXT,
        fingerprint=TEXT, exception_type=TEXT, died_at=INSTANT, given_back_at=INSTANT, outcome=TEXT,
        outcome_at=INSTANT,
    ),
    key=("id",),
    received="outcome_at",
    occurred="outcome_at",
    newest=True,
)  # fmt: skip

KINDS: Mapping[str, Kind] = {
    kind.name: kind for kind in (PROTOCOLS, RECOVERED, ACTIVATIONS, RUNS, TRIPS, LETTERS, REPLAYS)
}
