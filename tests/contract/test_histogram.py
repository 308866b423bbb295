"""Histograms of durations: merged by adding, read back within 9.1 %."""

import math
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from contract.histogram import (
    BUCKETS,
    FIRST_SECONDS,
    bound,
    bucket,
    merged,
    middle,
    packed,
    quantile,
    unpacked,
    within,
)

LONGEST = bound(BUCKETS - 1)
OFF = 2 ** (1 / 8) + 1e-9

durations = st.floats(FIRST_SECONDS, LONGEST)
samples = st.lists(durations, min_size=1, max_size=60)
histograms = st.dictionaries(st.integers(0, BUCKETS - 1), st.integers(1, 10**9), max_size=20)


def of(values: list[float]) -> dict[int, int]:
    return merged({bucket(value): 1} for value in values)


@given(durations)
def test_a_duration_lies_in_its_bucket(seconds: float) -> None:
    index = bucket(seconds)
    assert seconds <= bound(index) * (1 + 1e-9)
    assert index == 0 or seconds > bound(index - 1) * (1 - 1e-9)


@pytest.mark.parametrize("index", range(BUCKETS))
def test_a_bound_belongs_to_the_bucket_that_it_closes(index: int) -> None:
    assert bucket(bound(index)) == index


@pytest.mark.parametrize("seconds", [-1e9, -0.0, 0.0, 1e-12, FIRST_SECONDS, math.nan])
def test_what_is_no_time_at_all_is_in_the_first_bucket(seconds: float) -> None:
    assert bucket(seconds) == 0


@pytest.mark.parametrize("seconds", [LONGEST * 2, 1e300])
def test_what_is_longer_is_in_the_last_bucket(seconds: float) -> None:
    assert bucket(seconds) == BUCKETS - 1


@given(samples, st.fractions(0, 1))
@example([0.001, 0.0011], Fraction(1, 2))
def test_a_quantile_is_within_nine_per_cent_of_the_exact_one(values: list[float], part: Fraction) -> None:
    exact = sorted(values)[max(1, math.ceil(float(part) * len(values))) - 1]
    found = quantile(of(values), float(part))
    assert found is not None and exact / OFF <= found <= exact * OFF


def test_nothing_has_no_quantile() -> None:
    assert quantile({}, 0.95) is None


@given(samples, samples)
def test_merging_is_the_histogram_of_all(some: list[float], others: list[float]) -> None:
    assert merged([of(some), of(others)]) == of(some + others)


@given(histograms)
def test_it_is_read_as_it_was_written(histogram: dict[int, int]) -> None:
    assert unpacked(packed(histogram)) == histogram


@given(st.lists(histograms, max_size=4))
def test_texts_side_by_side_are_their_sum(several: list[dict[int, int]]) -> None:
    assert unpacked(" ".join(map(packed, several))) == merged(several)


@pytest.mark.parametrize("text", ["128:1", "-1:1", "3:-1", "3", "3:", ":3", "a:1", "1:x", "1:1:1", "1.5:1"])
def test_what_is_no_histogram_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        unpacked(text)


@given(samples, durations)
def test_those_within_a_time_are_off_by_its_bucket_at_most(values: list[float], seconds: float) -> None:
    exact = sum(value <= seconds for value in values)
    doubtful = of(values).get(bucket(seconds), 0)
    assert exact - doubtful <= within(of(values), seconds) + 1e-6
    assert within(of(values), seconds) <= exact + doubtful + 1e-6


@given(samples)
def test_all_are_within_the_longest(values: list[float]) -> None:
    assert within(of(values), LONGEST) == len(values)


def test_the_middle_is_as_far_from_both_bounds() -> None:
    assert middle(40) / bound(39) == pytest.approx(bound(40) / middle(40)) == pytest.approx(2 ** (1 / 8))
