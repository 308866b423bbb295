"""The breaker's rule, which only counts so far: nothing trips yet."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.breaker import Counts, TripReason, count, same_limit, trips
from contract.outcomes import RULES, Attempt, Breaker, Outcome, Settlement, attempt_number, is_exhausted, is_last


def after(*failures: tuple[Outcome, str]) -> Counts:
    counts = Counts()
    for outcome, exception_type in failures:
        counts = count(counts, outcome, exception_type)
    return counts


@pytest.mark.parametrize(("m", "n"), [(1, 1), (2, 1), (3, 1), (6, 2), (10, 3), (12, 4)])
def test_n_is_a_third_of_m_and_at_least_one(m: int, n: int) -> None:
    assert same_limit(m) == n


def test_failures_of_one_type_in_a_row_trip_after_n() -> None:
    counts = after(*[(Outcome.RAISED, "KeyError")] * 2)
    assert trips(counts, 10) is None
    assert trips(count(counts, Outcome.RAISED, "KeyError"), 10) is TripReason.SAME_TYPE


def test_failures_of_mixed_types_trip_after_m() -> None:
    mixed = [(Outcome.RAISED, name) for name in ("A", "B") * 5]
    assert trips(after(*mixed[:9]), 10) is None
    assert trips(after(*mixed), 10) is TripReason.ANY_TYPE


def test_a_success_sets_both_counts_to_zero() -> None:
    assert after((Outcome.RAISED, "A"), (Outcome.RETURNED, "")) == Counts()


@pytest.mark.parametrize("outcome", [o for o in Outcome if RULES[o].breaker is Breaker.IGNORE])
def test_what_says_nothing_about_the_agent_neither_counts_nor_resets(outcome: Outcome) -> None:
    before = after((Outcome.RAISED, "A"))
    assert count(before, outcome, "whatever") == before


@given(st.lists(st.sampled_from(["A", "B", "C", "ok", "temporary"]), max_size=60), st.integers(1, 30))
def test_counts_equal_a_look_back_over_the_whole_history(history: list[str], m: int) -> None:
    outcomes = {"ok": Outcome.RETURNED, "temporary": Outcome.TEMPORARY}
    counts = after(*[(outcomes.get(item, Outcome.RAISED), item) for item in history])
    told = [item for item in history if item != "temporary"]
    tail = told[len(told) - next((i for i, item in enumerate(reversed(told)) if item == "ok"), len(told)) :]
    same = next((i for i, item in enumerate(reversed(tail)) if item != tail[-1]), len(tail))
    assert (counts.any, counts.same) == (len(tail), same)
    assert (trips(counts, m) is not None) == (len(tail) >= m or same >= same_limit(m))


def test_every_outcome_has_its_rule() -> None:
    assert set(RULES) == set(Outcome)


def test_only_a_settled_outcome_costs_an_attempt() -> None:
    for rule in RULES.values():
        costs = rule.attempt in (Attempt.ONE, Attempt.LAST)
        assert costs == (rule.settlement in (Settlement.FAIL, Settlement.AFTER_LAST))


@pytest.mark.parametrize(("broker", "known", "attempt"), [(0, 0, 1), (2, 0, 3), (0, 1, 2), (3, 1, 4), (0, 4, 5)])
def test_the_attempt_follows_the_larger_of_both_counts(broker: int, known: int, attempt: int) -> None:
    assert attempt_number(broker, known) == attempt


def test_the_last_attempt_exhausts_and_one_more_is_not_begun() -> None:
    assert is_last(4, 4) and not is_last(3, 4)
    assert is_exhausted(5, 4) and not is_exhausted(4, 4)
    assert not is_last(1000, -1) and not is_exhausted(1000, -1)
