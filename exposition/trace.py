"""Trace contexts as W3C writes them (Trace Context, level 1), and those of attempts to handle a message.

The trace of an attempt is derived from what everybody knows of it: whoever makes the next one links to it, on
whatever server, and the MA leads to it, though nothing of it was told. Messages without an id of their own
share their key with equal ones: theirs is derived from the id of the handling's record.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

TRACEPARENT, TRACESTATE = "traceparent", "tracestate"
LONGEST_STATE = 512  # of a tracestate that is passed on
_FORM = re.compile(r"(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")


@dataclass(frozen=True, slots=True)
class TraceContext:
    """Hexadecimal ids. `str()` is the traceparent."""

    trace_id: str
    span_id: str
    sampled: bool = True

    def __str__(self) -> str:
        return f"00-{self.trace_id}-{self.span_id}-{self.sampled:02x}"


def parse(text: str) -> TraceContext | None:
    """None for what is no traceparent: then it is as if there were none. Later versions may be longer."""
    match = _FORM.fullmatch(text)
    if match is None or (match[1] == "00" and match[5]):
        return None
    return TraceContext(match[2], match[3], bool(int(match[4], 16) & 1))


def attempt_context(setting: str, case: str, attempt: int, record: UUID) -> TraceContext:
    """Of attempt `attempt` (from 1) for this setting. `case`: the message key, of a replayed message with its
    letter; empty for a message without an id."""
    known = f"{setting}\0{case}\0{attempt}" if case else str(record)
    digest = hashlib.sha256(known.encode("utf-8", "surrogatepass")).hexdigest()
    return TraceContext(digest[:32], digest[32:48])


def passed_on(properties: Mapping[str, object]) -> dict[str, str]:
    """The trace that a message came in, by its properties, for what is sent because of it. A state without a
    traceparent means nothing; one that is too long is left out, as W3C allows."""
    traceparent, state = properties.get(TRACEPARENT), properties.get(TRACESTATE)
    if not isinstance(traceparent, str) or parse(traceparent) is None:
        return {}
    if not isinstance(state, str) or not 0 < len(state) <= LONGEST_STATE:
        return {TRACEPARENT: traceparent}
    return {TRACEPARENT: traceparent, TRACESTATE: state}


def case_of(key: str, *, replayed: bool, letter: int | None) -> str:
    """Attempts are counted anew when a message is replayed. `letter`: the broker's id of its dead letter."""
    return f"{key}@{letter}" if replayed else key
