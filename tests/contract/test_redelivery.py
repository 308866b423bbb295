"""The redelivery schedule against the test vectors of the specification."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.redelivery import RedeliveryPolicy, delay_before, first_too_late, schedule


@pytest.mark.parametrize(("k", "expected"), [(1, 5000), (2, 10000), (3, 15000), (4, 15000)])
def test_delays_grow_geometrically_up_to_the_maximum(k: int, expected: int) -> None:
    assert delay_before(RedeliveryPolicy(delay=5000, multiplier=2, max_delay=15000), k) == expected


@pytest.mark.parametrize(("sign", "u", "expected"), [(-1, 0.25, 875), (1, 0.75, 1375), (-1, 0.05, 975)])
def test_collision_avoidance_spreads_a_delay_to_both_sides(sign: int, u: float, expected: int) -> None:
    policy = RedeliveryPolicy(delay=1000, multiplier=1, max_delay=15000, collision_avoidance=0.5)
    assert delay_before(policy, 1, sign=sign, u=u) == expected


def test_the_maximum_delay_is_ten_delays_unless_set() -> None:
    assert delay_before(RedeliveryPolicy(delay=100, multiplier=10), 9) == 1000


def test_redeliveries_count_from_one() -> None:
    with pytest.raises(ValueError, match="from 1"):
        delay_before(RedeliveryPolicy(), 0)


def test_the_schedule_lists_every_attempt_until_the_dead_letter_queue() -> None:
    planned = schedule(RedeliveryPolicy(max_attempts=4, delay=1000, multiplier=2))
    assert [item.number for item in planned] == [1, 2, 3, 4]
    assert [item.latest for item in planned] == [timedelta(seconds=s) for s in (0, 1, 3, 7)]


@given(
    st.integers(0, 100_000),
    st.floats(1, 5),
    st.floats(0, 1),
    st.integers(1, 20),
)
def test_the_band_holds_every_possible_delay(delay: int, multiplier: float, factor: float, k: int) -> None:
    policy = RedeliveryPolicy(delay=delay, multiplier=multiplier, collision_avoidance=factor)
    low = delay_before(policy, k, sign=-1, u=1.0)
    high = delay_before(policy, k, sign=1, u=1.0)
    assert low <= delay_before(policy, k) <= high <= policy.longest


def test_the_schedule_tells_each_delay_with_its_band() -> None:
    planned = schedule(RedeliveryPolicy(max_attempts=3, delay=1000, multiplier=3, collision_avoidance=0.5))
    delays = [(item.shortest.total_seconds(), item.longest.total_seconds()) for item in planned]
    assert delays == [(0, 0), (0.5, 1.5), (1.5, 4.5)]
    assert (planned[-1].earliest.total_seconds(), planned[-1].latest.total_seconds()) == (2, 6)


@given(st.integers(0, 10**10), st.floats(1, 100), st.floats(0, 1), st.integers(1, 1_000_000), st.floats(0, 1))
def test_a_delay_beyond_all_numbers_is_the_maximum(
    delay: int, growth: float, factor: float, k: int, u: float
) -> None:
    policy = RedeliveryPolicy(delay=delay, multiplier=growth, collision_avoidance=factor)
    for sign in (-1, 1):
        assert 0 <= delay_before(policy, k, sign=sign, u=u) <= policy.longest
    assert delay_before(RedeliveryPolicy(delay=5, multiplier=100), 1_000_000) == 50


def test_without_a_word_ten_attempts_are_made_at_distances_that_double_up_to_fifty_seconds() -> None:
    planned = schedule(RedeliveryPolicy())
    assert [item.longest.total_seconds() for item in planned] == [0, 5, 10, 20, 40, 50, 50, 50, 50, 50]
    assert [item.shortest for item in planned] == [item.longest for item in planned]


def test_a_delay_that_nothing_is_drawn_for_is_the_middle_of_its_band_and_one_without_a_sign_is_longer() -> (
    None
):
    policy = RedeliveryPolicy(delay=1000, collision_avoidance=0.5)
    assert delay_before(policy, 1) == 1000
    assert delay_before(policy, 1, u=1.0) == 1500


def test_no_delay_never_grows() -> None:
    assert delay_before(RedeliveryPolicy(delay=0, multiplier=10, max_delay=15000), 1000) == 0


@pytest.mark.parametrize(
    ("most", "limit", "attempts"), [(-1, 7, 7), (0, 7, 7), (1, 7, 1), (6, 7, 6), (8, 7, 7)]
)
def test_a_schedule_without_end_is_cut(most: int, limit: int, attempts: int) -> None:
    """As the broker has it, and contract.outcomes: what is below 1 is no limit."""
    assert len(schedule(RedeliveryPolicy(max_attempts=most), limit=limit)) == attempts


def test_a_schedule_shows_a_hundred_attempts_at_most() -> None:
    assert len(schedule(RedeliveryPolicy(max_attempts=-1))) == 100


def test_a_delay_ends_where_the_numbers_of_the_broker_end() -> None:
    for k in (30, 1000):
        assert delay_before(RedeliveryPolicy(delay=10, multiplier=10, max_delay=2**70), k) == 2**63 - 1


def test_the_first_attempt_that_an_expiry_takes_away() -> None:
    planned = schedule(RedeliveryPolicy(max_attempts=4, delay=1000, multiplier=2, collision_avoidance=0.5))
    late = first_too_late(planned, timedelta(seconds=4))
    # Attempts 2 and 3 begin after at most 1.5 s and 4.5 s.
    assert late is not None and late.number == 3
    assert first_too_late(planned, timedelta(seconds=4.5)) == late, "the message expires at that instant"
    assert first_too_late(planned, timedelta(seconds=60)) is None
