"""The table of outcomes, row by row, and the number of an attempt."""

import pytest

from contract.outcomes import (
    DISPOSITIONS,
    RULES,
    AfterLast,
    Attempt,
    Breaker,
    Disposition,
    Outcome,
    Rule,
    Settlement,
    attempt_number,
    dead_lettered_by_hand,
    is_exhausted,
    is_last,
)

TABLE = {
    "returned": ("none", "reset", "accept", False),
    "raised": ("one", "count", "fail", True),
    "temporary": ("one", "ignore", "fail", True),
    "invalid": ("last", "count", "after_last", True),
    "child_died": ("one", "count", "fail", True),
    "timed_out": ("one", "count", "fail", True),
    "rolled_back": ("one", "count", "fail", True),
    "unanswered": ("one", "count", "fail", True),
    "raised_after_commit": ("none", "count", "accept", True),
    "released": ("none", "ignore", "unsettled", False),
    "connection_lost": ("broker", "ignore", "unsettled", False),
    "kma_died": ("journal", "ignore", "unsettled", True),
    "noted": ("none", "ignore", "unsettled", True),
}


@pytest.mark.parametrize("outcome", Outcome)
def test_each_outcome_means_what_the_specification_says(outcome: Outcome) -> None:
    attempt, breaker, settlement, protocol = TABLE[outcome.value]

    assert RULES[outcome] == Rule(Attempt(attempt), Breaker(breaker), Settlement(settlement), protocol)


@pytest.mark.parametrize(
    ("delivery_count", "known", "attempt"), [(0, 0, 1), (3, 0, 4), (0, 3, 4), (2, 5, 6), (5, 2, 6)]
)
def test_an_attempt_is_numbered_by_whoever_counted_more(
    delivery_count: int, known: int, attempt: int
) -> None:
    assert attempt_number(delivery_count, known) == attempt


@pytest.mark.parametrize(
    ("attempt", "limit", "last", "exhausted"),
    [
        (1, 4, False, False),
        (4, 4, True, False),
        (5, 4, True, True),
        (1, 1, True, False),
        (2, 1, True, True),
        (99, -1, False, False),
        (99, 0, False, False),
    ],
)
def test_the_last_attempt_is_the_one_at_the_limit(
    attempt: int, limit: int, last: bool, exhausted: bool
) -> None:
    assert (is_last(attempt, limit), is_exhausted(attempt, limit)) == (last, exhausted)


def test_what_a_setting_wants_after_the_last_attempt_decides_what_becomes_of_the_message() -> None:
    """By the words that settings and protocols are stored with. Where nothing is ordered nothing can stay."""
    becomes = {"dlq": "dlq", "exception": "exception", "discard": "discarded", "stay": "dlq"}
    assert {AfterLast(wanted): Disposition(found) for wanted, found in becomes.items()} == DISPOSITIONS


@pytest.mark.parametrize(
    ("outcome", "disposition", "last_attempt", "by_hand"),
    [
        ("noted", "dlq", True, True),
        ("noted", "dlq", False, False),
        ("noted", "exception", True, False),
        ("noted", "", True, False),
        ("raised", "dlq", True, False),
    ],
)
def test_only_a_note_of_a_dead_letter_is_a_persons_doing(
    outcome: str, disposition: str, last_attempt: bool, by_hand: bool
) -> None:
    assert dead_lettered_by_hand(outcome, disposition, last_attempt=last_attempt) is by_hand
