"""The delay before each redelivery, as Artemis computes it from an address setting."""

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class RedeliveryPolicy:
    """Durations in milliseconds. `max_delay` None = 10 × delay; `max_attempts` -1 = without end."""

    max_attempts: int = 10
    delay: int = 5000
    multiplier: float = 2.0
    max_delay: int | None = None
    collision_avoidance: float = 0.0

    @property
    def longest(self) -> int:
        return 10 * self.delay if self.max_delay is None else self.max_delay


def delay_before(policy: RedeliveryPolicy, k: int, *, sign: int = 1, u: float = 0.0) -> int:
    """Milliseconds before redelivery `k` = 1, 2, …: `d = delay * multiplier^(k-1)`, `d += d * (sign * f) * u`, capped.

    Source: the specification, section 7; `RedeliveryDelayCalculator` of the broker behaves so.
    """
    if k < 1:
        raise ValueError("redeliveries count from 1")
    base = policy.delay * policy.multiplier ** (k - 1)
    base += base * (sign * policy.collision_avoidance) * u
    return int(min(base, policy.longest))


@dataclass(frozen=True, slots=True)
class PlannedDelivery:
    """Attempt `number` begins between `earliest` and `latest` after the first failure (handling time left out)."""

    number: int
    earliest: timedelta
    latest: timedelta


def schedule(policy: RedeliveryPolicy, *, limit: int = 100) -> list[PlannedDelivery]:
    """Every attempt until the dead-letter queue, at most `limit`, with the band that collision avoidance opens."""
    attempts = limit if policy.max_attempts < 0 else min(policy.max_attempts, limit)
    planned, earliest, latest = [PlannedDelivery(1, timedelta(), timedelta())], 0, 0
    for k in range(1, attempts):
        earliest += delay_before(policy, k, sign=-1, u=1.0)
        latest += delay_before(policy, k, sign=1, u=1.0)
        planned.append(PlannedDelivery(k + 1, timedelta(milliseconds=earliest), timedelta(milliseconds=latest)))
    return planned
