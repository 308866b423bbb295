"""Durations in buckets whose bounds grow by the fourth root of 2: mergeable by adding, exact in number.

Bucket 0 holds up to 1 ms, bucket i what is above `bound(i - 1)` and at most `bound(i)`; the last one also
holds everything longer (41 days). A duration read back is at most 9.1 % off (2 ** 0.125), because it is the
geometric middle of its bucket. The scheme is that of exponential histograms with scale 2
(OpenTelemetry, metrics data model).
"""

import math
from bisect import bisect_left
from collections.abc import Iterable, Mapping

FIRST_SECONDS = 0.001
BUCKETS = 128
_PER_DOUBLING = 4

# {bucket: number}. Empty buckets are left out.
Histogram = Mapping[int, int]


def bound(index: int) -> float:
    """Returns the upper bound of a bucket in seconds."""
    return float(FIRST_SECONDS * 2 ** (index / _PER_DOUBLING))


# Of all buckets but the last, which has no end: `bisect_left(BOUNDS, seconds)` is `bucket` without a call.
BOUNDS = tuple(bound(index) for index in range(BUCKETS - 1))


def bucket(seconds: float) -> int:
    """Of a duration; below 0 counts as 0."""
    return bisect_left(BOUNDS, seconds)


def middle(index: int) -> float:
    """Returns what a duration of the bucket is taken for, in seconds."""
    return float(FIRST_SECONDS * 2 ** ((index - 0.5) / _PER_DOUBLING))


def merged(histograms: Iterable[Histogram]) -> dict[int, int]:
    total: dict[int, int] = {}
    for histogram in histograms:
        for index, number in histogram.items():
            total[index] = total.get(index, 0) + number
    return total


def quantile(histogram: Histogram, part: float) -> float | None:
    """Returns the seconds within which `part` (0 to 1) of the durations lie; None where there are none."""
    number = sum(histogram.values())
    rank, seen = max(1, math.ceil(part * number)), 0
    for index in sorted(histogram):
        seen += histogram[index]
        if seen >= rank:
            return middle(index)
    return None


def within(histogram: Histogram, seconds: float) -> float:
    """Returns how many durations are at most `seconds`; of the bucket that holds it the part below it."""
    edge = bucket(seconds)
    whole = sum(number for index, number in histogram.items() if index < edge)
    lower = bound(edge - 1) if edge else 0.0
    share = min(1.0, max(0.0, (seconds - lower) / (bound(edge) - lower)))
    return whole + histogram.get(edge, 0) * (share if edge < BUCKETS - 1 else 1.0)


def packed(histogram: Histogram) -> str:
    """Returns it as text: `bucket:number` in order, separated by blanks."""
    return " ".join(f"{index}:{histogram[index]}" for index in sorted(histogram) if histogram[index])


def unpacked(text: str) -> dict[int, int]:
    """Reads what `packed` wrote. Raises ValueError."""
    found: dict[int, int] = {}
    for part in text.split():
        at, _colon, counted = part.partition(":")
        index, number = int(at), int(counted)
        if not 0 <= index < BUCKETS or number < 0:
            raise ValueError(f"no bucket of a histogram: {part}")
        found[index] = found.get(index, 0) + number
    return found
