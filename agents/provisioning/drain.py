"""When the backlog of a subscription will be gone, from what the broker counted lately.

Pure. What came is the broker's own counter, what left follows from it and from the depth, so both rates are
exact, whoever consumes. The queue is looked at every ten seconds; rates of the last two minutes, or since a
producer began or ended, are believed to go on.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

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
    if not _is_enough(samples):
        return None
    samples = _of_now(samples)
    first, last = samples[0], samples[-1]
    seconds = last.at - first.at
    rate_in = (last.added - first.added) / seconds
    net = (last.depth - first.depth) / seconds
    rate_out = max(0.0, rate_in - net)
    if _has_stopped(samples, rate_out):
        return DrainEstimate(last.depth, rate_in, 0.0, None)
    left = last.depth / -net if net < 0 else 0.0 if not last.depth else None
    return DrainEstimate(last.depth, rate_in, rate_out, left)


def _is_enough(samples: Sequence[Sample]) -> bool:
    return len(samples) >= LEAST_SAMPLES and samples[-1].at - samples[0].at >= LEAST_SECONDS


def _of_now(samples: Sequence[Sample]) -> Sequence[Sample]:
    """Leaves out what was before a producer began, or while one worked that has ended since. One that comes
    again and again is taken with its pauses."""
    came = [after.added > before.added for before, after in pairwise(samples)]
    begins = [at for at, one in enumerate(came) if one and (at == 0 or not came[at - 1])]
    if len(begins) != 1:
        return samples
    end = max(at for at, one in enumerate(came) if one) + 1
    for part in (samples[end:], samples[begins[0] :]):
        if _is_enough(part):
            return part
    return samples


def _has_stopped(samples: Sequence[Sample], rate_out: float) -> bool:
    """Returns whether nothing left lately, though some should have at that rate."""
    last = samples[-1]
    before = next(each for each in reversed(samples) if last.at - each.at >= LEAST_SECONDS)
    left = (last.added - before.added) - (last.depth - before.depth)
    return left <= 0 < last.depth and rate_out * (last.at - before.at) >= STOPPED_EXPECTED
