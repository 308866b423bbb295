"""When the backlog of a subscription will be gone, from what the broker counted lately.

Pure. What came is the broker's own counter, what left follows from it and from the depth, so both rates are
exact, whoever consumes. The queue is looked at every ten seconds; rates of the last two minutes are believed
to go on.
"""

from collections.abc import Sequence
from dataclasses import dataclass

# Rates of longer ago say nothing of a producer that has ended since.
WINDOW_SECONDS = 120.0
# Two looks tell of a moment only.
LEAST_SAMPLES, LEAST_SECONDS = 3, 20.0
# Nothing left in LEAST_SECONDS: it has stopped where so many should have.
STOPPED_EXPECTED = 3.0


@dataclass(frozen=True, slots=True)
class Sample:
    """`at` in seconds since 1970; `depth`: deliverable now or in delivery; `added`: the broker's counter."""

    at: float
    added: int
    depth: int


@dataclass(frozen=True, slots=True)
class DrainEstimate:
    """Rates in messages per second. `seconds` until nothing is left; None: never at these rates."""

    depth: int
    rate_in: float
    rate_out: float
    seconds: float | None

    @property
    def work_seconds(self) -> float:
        """Returns how long its consumers would need if nothing came any more."""
        return self.depth / self.rate_out if self.rate_out > 0 else float("inf")


def kept(samples: Sequence[Sample], newest: Sample) -> list[Sample]:
    """Returns what to remember. A counter that went back was restarted: what was before it is of no use."""
    if samples and newest.added < samples[-1].added:
        return [newest]
    return [each for each in samples if newest.at - WINDOW_SECONDS <= each.at < newest.at] + [newest]


def estimate(samples: Sequence[Sample]) -> DrainEstimate | None:
    """Returns None while too little was seen. `samples`: as `kept` returns them."""
    if len(samples) < LEAST_SAMPLES or (seconds := samples[-1].at - samples[0].at) < LEAST_SECONDS:
        return None
    first, last = samples[0], samples[-1]
    rate_in = (last.added - first.added) / seconds
    net = (last.depth - first.depth) / seconds
    rate_out = max(0.0, rate_in - net)
    if _has_stopped(samples, rate_out):
        return DrainEstimate(last.depth, rate_in, 0.0, None)
    left = last.depth / -net if net < 0 else 0.0 if not last.depth else None
    return DrainEstimate(last.depth, rate_in, rate_out, left)


def _has_stopped(samples: Sequence[Sample], rate_out: float) -> bool:
    """Returns whether nothing left lately, though some should have at that rate."""
    last = samples[-1]
    before = next(each for each in reversed(samples) if last.at - each.at >= LEAST_SECONDS)
    left = (last.added - before.added) - (last.depth - before.depth)
    return left <= 0 < last.depth and rate_out * (last.at - before.at) >= STOPPED_EXPECTED
