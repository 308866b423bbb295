"""Metrics as they are declared, and what one scrape answers of them, in the text format of Prometheus."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from threading import Lock
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

CONTENT_TYPE = CONTENT_TYPE_LATEST


class Kind(Enum):
    GAUGE = "gauge"
    COUNTER = "counter"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Declared:
    """One metric: its name never changes. `says` is one line of English. `buckets`: upper bounds of a
    histogram, in its unit."""

    name: str
    kind: Kind
    says: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()


def gauge(name: str, says: str, *labels: str) -> Declared:
    return Declared(name, Kind.GAUGE, says, labels)


def counter(name: str, says: str, *labels: str) -> Declared:
    return Declared(name, Kind.COUNTER, says, labels)


def histogram(name: str, says: str, buckets: tuple[float, ...], *labels: str) -> Declared:
    return Declared(name, Kind.HISTOGRAM, says, labels, buckets)


@dataclass(frozen=True, slots=True)
class Distribution:
    """Durations by upper bound: how many lay within it and above the one before, and the sum of all.
    `above`: those beyond the last bound."""

    within: tuple[int, ...]
    above: int
    total: float

    def __add__(self, more: "Distribution") -> "Distribution":
        within = tuple(map(sum, zip(self.within, more.within, strict=True)))
        return Distribution(within, self.above + more.above, self.total + more.total)


# A datetime is shown as the seconds since then: the age of a row grows while nobody can read it again.
Value = float | datetime | Distribution
Sample = tuple[str, tuple[str, ...], Value]


class Samples:
    """Collects the samples of declared metrics. One that is not declared, or has other labels, is a mistake
    of ours: KeyError, ValueError."""

    def __init__(self, declared: Iterable[Declared]) -> None:
        self._declared = {each.name: each for each in declared}
        self.found: list[Sample] = []

    def add(self, name: str, value: Value, *labels: str) -> None:
        if len(labels) != len(self._declared[name].labels):
            raise ValueError(f"{name} has the labels {self._declared[name].labels}, not {labels}")
        self.found.append((name, labels, value))


def text(
    declared: Sequence[Declared],
    samples: Iterable[Sample],
    now: datetime,
    more: Iterable[Metric] = (),
) -> bytes:
    """Metrics in the order of their declaration; those without a sample are left out."""
    of_name: dict[str, list[Sample]] = {each.name: [] for each in declared}
    for sample in samples:
        of_name[sample[0]].append(sample)
    families = [_family(each, of_name[each.name], now) for each in declared if of_name[each.name]]
    return generate_latest(_Collected([*families, *more]))


class _Collected:
    """What the library takes for a registry."""

    def __init__(self, families: Sequence[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterator[Metric]:
        return iter(self._families)


def _family(declared: Declared, samples: Sequence[Sample], now: datetime) -> Metric:
    name, says, labels = declared.name, declared.says, declared.labels
    if declared.kind is Kind.HISTOGRAM:
        histogram = HistogramMetricFamily(name, says, labels=labels)
        for _name, values, value in samples:
            assert isinstance(value, Distribution)
            histogram.add_metric(values, list(_cumulated(declared.buckets, value)), value.total)
        return histogram
    kind: Any = CounterMetricFamily if declared.kind is Kind.COUNTER else GaugeMetricFamily
    family = kind(name, says, labels=labels)
    for _name, values, value in samples:
        assert not isinstance(value, Distribution)
        family.add_metric(
            values, max(0.0, (now - value).total_seconds()) if isinstance(value, datetime) else value
        )
    found: Metric = family
    return found


def _cumulated(buckets: Sequence[float], value: Distribution) -> Iterator[tuple[str, float]]:
    number = 0
    for bound, within in zip(buckets, value.within, strict=True):
        number += within
        yield repr(float(bound)), number
    yield "+Inf", number + value.above


# -- what a process counts itself: it begins at 0 with the process -------------------------------------------


class Tallies:
    """Counters and histograms of one process, from any thread."""

    def __init__(self, declared: Iterable[Declared]) -> None:
        self._declared: Mapping[str, Declared] = {each.name: each for each in declared}
        self._lock = Lock()
        self._counts: dict[tuple[str, tuple[str, ...]], float] = {}
        self._durations: dict[tuple[str, tuple[str, ...]], Distribution] = {}

    def count(self, name: str, *labels: str, by: float = 1) -> None:
        with self._lock:
            self._counts[name, labels] = self._counts.get((name, labels), 0) + by

    def observe(self, name: str, value: float, *labels: str) -> None:
        bounds = self._declared[name].buckets
        with self._lock:
            known = self._durations.get((name, labels), Distribution((0,) * len(bounds), 0, 0.0))
            at = next((index for index, bound in enumerate(bounds) if value <= bound), len(bounds))
            within = tuple(number + (index == at) for index, number in enumerate(known.within))
            self._durations[name, labels] = Distribution(
                within, known.above + (at == len(bounds)), known.total + value
            )

    def samples(self) -> list[Sample]:
        with self._lock:
            found: list[Sample] = [(name, labels, value) for (name, labels), value in self._counts.items()]
            found += [(name, labels, value) for (name, labels), value in self._durations.items()]
        return found
