"""The delay before each redelivery, as Artemis computes it from an address setting."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

# Where the broker's own arithmetic ends, a Java long: far above every maximum delay.
LARGEST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class RedeliveryPolicy:
    """Durations in milliseconds. `max_delay` None = 10 × delay; `max_attempts` below 1 = without end."""

    max_attempts: int = 10
    delay: int = 5000
    multiplier: float = 2.0
    max_delay: int | None = None
    collision_avoidance: float = 0.0

    @property
    def longest(self) -> int:
        return 10 * self.delay if self.max_delay is None else self.max_delay


def delay_before(policy: RedeliveryPolicy, k: int, *, sign: int = 1, u: float = 0.0) -> int:
    """Milliseconds before redelivery `k` = 1, 2, …: `d = delay * multiplier^(k-1)`, `d += d * (sign * f) *
    u`, capped. `u` is uniform in 0..1 and `sign` as often -1 as 1, drawn anew for each message and
    redelivery.

    Source: the specification, section 7; `QueueImpl.calculateRedeliveryDelay` of the broker behaves so, and
    is measured against this in tests/broker/management/test_redelivery_measured.py.
    """
    if k < 1:
        raise ValueError("redeliveries count from 1")
    delay = _grown(policy, k)
    delay += int(delay * (sign * policy.collision_avoidance) * u)
    return max(0, min(delay, policy.longest))


def _grown(policy: RedeliveryPolicy, k: int) -> int:
    if not policy.delay:
        return 0
    try:
        return int(min(policy.delay * float(policy.multiplier) ** (k - 1), LARGEST))
    except OverflowError:
        return LARGEST


@dataclass(frozen=True, slots=True)
class PlannedDelivery:
    """Attempt `number` begins between `earliest` and `latest` after the first failure (handling time left
    out), which is between `shortest` and `longest` after the failure of the attempt before it. The first
    begins at 0."""

    number: int
    earliest: timedelta
    latest: timedelta
    shortest: timedelta = timedelta()
    longest: timedelta = timedelta()


def schedule(policy: RedeliveryPolicy, *, limit: int = 100) -> list[PlannedDelivery]:
    """Every attempt until the dead-letter queue, at most `limit`, with the band that collision avoidance
    opens. The message is dead when the last of them has failed."""
    attempts = limit if policy.max_attempts < 1 else min(policy.max_attempts, limit)
    earliest = latest = timedelta()
    planned = [PlannedDelivery(1, earliest, latest)]
    for k in range(1, attempts):
        shortest = timedelta(milliseconds=delay_before(policy, k, sign=-1, u=1.0))
        longest = timedelta(milliseconds=delay_before(policy, k, sign=1, u=1.0))
        earliest, latest = earliest + shortest, latest + longest
        planned.append(PlannedDelivery(k + 1, earliest, latest, shortest, longest))
    return planned


def first_too_late(planned: Iterable[PlannedDelivery], expiry: timedelta) -> PlannedDelivery | None:
    """The first attempt that a message may not live to see, which expires so long after it came to the broker
    and failed for the first time as soon as it came. None: it is dead before."""
    return next((each for each in planned if each.latest >= expiry), None)
