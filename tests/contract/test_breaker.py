"""The breaker's rule: what counts, what sets back, when it trips."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.breaker import MARK_LENGTH, Counts, TripReason, count, mark, may_repeat, same_limit, trips
from contract.outcomes import (
    RULES,
    Attempt,
    Breaker,
    Outcome,
    Settlement,
    attempt_number,
    is_exhausted,
    is_last,
)


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


NO_FAILURE = {"ok": Outcome.RETURNED, "temporary": Outcome.TEMPORARY, "stopped": Outcome.RELEASED}


@given(st.lists(st.sampled_from(["A", "B", "C", *NO_FAILURE]), max_size=60), st.integers(1, 30))
def test_counts_equal_a_look_back_over_the_whole_history(history: list[str], m: int) -> None:
    counts = after(*[(NO_FAILURE.get(item, Outcome.RAISED), item) for item in history])
    told = [item for item in history if item not in ("temporary", "stopped")]
    tail = told[len(told) - next((i for i, item in enumerate(reversed(told)) if item == "ok"), len(told)) :]
    same = next((i for i, item in enumerate(reversed(tail)) if item != tail[-1]), len(tail))
    assert (counts.any, counts.same) == (len(tail), same)
    alike, many = same >= same_limit(m), len(tail) >= m
    assert trips(counts, m) is (TripReason.SAME_TYPE if alike else TripReason.ANY_TYPE if many else None)


@dataclass(frozen=True)
class Ending:
    """One handling of the message `key`; the exception's type, or `ok`, or `temporary`."""

    key: str
    kind: str


def counted(history: list[Ending], *, once: bool) -> Counts:
    outcomes = {"ok": Outcome.RETURNED, "temporary": Outcome.TEMPORARY}
    counts = Counts()
    for one in history:
        key = one.key if once else ""
        counts = count(counts, outcomes.get(one.kind, Outcome.RAISED), one.kind, message_key=key)
    return counts


endings = st.builds(Ending, st.sampled_from("pqrs"), st.sampled_from(["A", "B", "ok", "temporary"]))


@given(st.lists(endings, max_size=60))
def test_counting_each_message_once_is_counting_without_its_repetitions(history: list[Ending]) -> None:
    first: list[Ending] = []
    seen: set[str] = set()
    for one in history:
        if one.kind == "ok":
            seen.clear()
        elif one.kind != "temporary" and one.key in seen:
            continue
        elif one.kind != "temporary":
            seen.add(one.key)
        first.append(one)
    found, expected = counted(history, once=True), counted(first, once=False)
    assert (found.same_type, found.same, found.any) == (expected.same_type, expected.same, expected.any)
    assert len(found.marks) == found.any == len(seen), "what is remembered never outgrows the row"


@given(st.lists(endings, max_size=60))
def test_a_repeated_failure_of_one_message_alone_never_trips_what_counts_once(history: list[Ending]) -> None:
    alone = [Ending("p", one.kind) for one in history]
    assert counted(alone, once=True).any <= 1
    assert trips(counted(alone, once=True), 6) is None


def test_a_message_counts_anew_after_a_success() -> None:
    history = [Ending("p", "A"), Ending("p", "A"), Ending("q", "ok"), Ending("p", "A")]
    assert counted(history, once=True).any == 1


def test_a_repetition_of_another_type_breaks_no_row_of_equal_failures() -> None:
    history = [Ending("p", "A"), Ending("q", "A"), Ending("p", "B"), Ending("r", "A")]
    assert counted(history, once=True).same == 3


def test_what_is_remembered_of_a_row_is_bounded() -> None:
    counts = Counts()
    for number in range(1001):
        counts = count(counts, Outcome.RAISED, "A", message_key=f"ID:{number}" * 10)
    assert len(counts.marks) == 1000 and {len(one) for one in counts.marks} == {16}
    assert count(counts, Outcome.RAISED, "A", message_key="ID:1" * 10) == counts
    assert count(counts, Outcome.RAISED, "A", message_key="ID:0" * 10).any == 1002, "forgotten: it counts"


def test_a_mark_always_has_its_length() -> None:
    """Of 17 characters half would be no whole number of bytes: a longer one is a change of what is stored."""
    assert MARK_LENGTH == 16 == len(mark("ID:7")) == len(mark("ID:" + "7" * 250))


def test_a_message_whose_key_is_no_utf_8_counts_once_too() -> None:
    broken = count(Counts(), Outcome.RAISED, "A", message_key="ID:\ud800")
    assert count(broken, Outcome.RAISED, "A", message_key="ID:\ud800") == broken
    assert count(broken, Outcome.RAISED, "A", message_key="ID:\ud801").any == 2


def test_a_message_that_counts_again_is_remembered_once_as_the_newest() -> None:
    counts = Counts()
    for key in ("ID:1", "ID:2", "ID:1"):
        counts = count(counts, Outcome.RAISED, "A", message_key=key, repeats=False)
    assert (counts.any, counts.marks) == (3, (mark("ID:2"), mark("ID:1")))


def test_failures_that_name_no_type_are_of_one_type() -> None:
    """Nothing failed yet: no type, no message."""
    assert Counts() == Counts(same_type="", same=0, any=0, marks=())
    assert count(count(Counts(), Outcome.RAISED), Outcome.RAISED) == Counts(same_type="", same=2, any=2)


def test_equal_messages_without_an_id_are_one_only_when_they_come_again() -> None:
    counts = Counts()
    for attempt, any_ in ((1, 1), (2, 1), (1, 2), (2, 2)):
        repeats = may_repeat(weak=True, attempt=attempt)
        counts = count(counts, Outcome.RAISED, "A", message_key="sha256:x", repeats=repeats)
        assert counts.any == any_
    assert may_repeat(weak=False, attempt=1), "given back, or its count was lost with the broker"


@given(st.lists(endings, min_size=1, max_size=40), st.integers(1, 30))
def test_on_trial_the_first_failure_that_counts_trips(history: list[Ending], m: int) -> None:
    counts = counted(history, once=False)
    assert (trips(counts, m, trial=True) is TripReason.TRIAL) == (counts.any > 0)


@given(st.lists(endings, max_size=60), st.integers(1, 30))
def test_a_larger_limit_never_trips_sooner(history: list[Ending], m: int) -> None:
    counts = counted(history, once=False)
    assert trips(counts, m) is not None or trips(counts, m + 1) is None


def test_the_reasons_have_the_words_that_trips_are_stored_with() -> None:
    assert [reason.value for reason in TripReason] == ["same_type", "any_type", "trial"]


def test_every_outcome_has_its_rule() -> None:
    assert set(RULES) == set(Outcome)


def test_only_a_settled_outcome_costs_an_attempt() -> None:
    for rule in RULES.values():
        costs = rule.attempt in (Attempt.ONE, Attempt.LAST)
        assert costs == (rule.settlement in (Settlement.FAIL, Settlement.AFTER_LAST))


@pytest.mark.parametrize(
    ("broker", "known", "attempt"), [(0, 0, 1), (2, 0, 3), (0, 1, 2), (3, 1, 4), (0, 4, 5)]
)
def test_the_attempt_follows_the_larger_of_both_counts(broker: int, known: int, attempt: int) -> None:
    assert attempt_number(broker, known) == attempt


def test_the_last_attempt_exhausts_and_one_more_is_not_begun() -> None:
    assert is_last(4, 4) and not is_last(3, 4)
    assert is_exhausted(5, 4) and not is_exhausted(4, 4)
    assert not is_last(1000, -1) and not is_exhausted(1000, -1)
