"""By how much the clock of a server was off when it told of a failure."""

from agents.pages.servers import SKEW_TOLERATED_SECONDS
from failures.models import FailureProtocol


def skew_of(protocol: FailureProtocol) -> float | None:
    """Seconds that its clock was ahead (negative: behind), None while nobody has to know.

    A KMA that does not say when it sends cannot be behind for certain: its records may have waited in its
    spool. But what had not occurred yet by our clock when it came has a clock that is ahead.
    """
    skew = protocol.clock_skew_seconds
    if skew is None:
        skew = max(0.0, (protocol.occurred_at - protocol.received_at).total_seconds())
    return skew if abs(skew) > SKEW_TOLERATED_SECONDS else None


def is_ahead(protocol: FailureProtocol) -> bool:
    """Whether it came before it occurred, by more than clocks may differ: its place in a list is none to
    believe."""
    return (protocol.occurred_at - protocol.received_at).total_seconds() > SKEW_TOLERATED_SECONDS
