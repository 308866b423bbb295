"""What failed more or less often than before; whether it points at a server."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from failures.error_groups.rules import Change, Difference, Oddity, Where, alone, compare, oddity

COUNTS = st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 10_000))


@pytest.mark.parametrize(
    ("before", "after", "attempts", "change"),
    [
        (0, 1, (100, 100), Change.NEW),
        (1, 0, (100, 100), Change.GONE),
        (10, 12, (1000, 1000), Change.SAME),
        (10, 40, (1000, 1000), Change.MORE),
        (40, 10, (1000, 1000), Change.FEWER),
        # Ten times the attempts: ten times the failures are the same, as many are fewer.
        (40, 400, (1000, 10_000), Change.SAME),
        (40, 40, (1000, 10_000), Change.FEWER),
        (40, 40, (10_000, 1000), Change.MORE),
        (40, 40, (0, 1000), Change.SAME),
        (40, 40, (1000, 0), Change.SAME),
        (4, 40, (1, 10), Change.SAME),
        (40, 4, (10, 1), Change.SAME),
        # Two standard deviations of 4 and 12, which are 4 each: no more.
        (4, 12, (100, 100), Change.SAME),
        (4, 13, (100, 100), Change.MORE),
        (12, 4, (100, 100), Change.SAME),
        (13, 4, (100, 100), Change.FEWER),
        # Of twice the attempts, where 4 stand for 8 with a variance of 16.
        (4, 20, (100, 200), Change.SAME),
        (4, 21, (100, 200), Change.MORE),
    ],
)
def test_a_change_is_said_where_it_is_hardly_chance(
    before: int, after: int, attempts: tuple[int, int], change: Change
) -> None:
    assert [one.change for one in compare({"a": before}, {"a": after} if after else {}, *attempts)] == [
        change
    ]


def test_what_is_new_comes_first_and_what_is_the_same_last() -> None:
    before = {"same": 5, "gone": 900, "fewer": 90}
    after = {"same": 5, "new": 1, "fewer": 9, "many": 50}
    found = compare(before, after, 1000, 1000)

    assert [one.fingerprint for one in found] == ["many", "new", "gone", "fewer", "same"]


def test_of_one_kind_of_change_the_largest_comes_first_then_the_name() -> None:
    found = compare({"x": 5, "y": 900}, {"b": 5, "a": 5, "c": 9}, 10, 10)
    assert [one.fingerprint for one in found] == ["c", "a", "b", "y", "x"]


def test_a_difference_says_what_was_to_be_expected() -> None:
    assert compare({"a": 4}, {"a": 20}, 100, 200) == [Difference("a", 4, 20, 8.0, Change.SAME)]
    assert [change.value for change in Change] == ["new", "more", "gone", "fewer", "same"]


@given(COUNTS, COUNTS, st.integers(0, 10**6), st.integers(0, 10**6))
def test_everything_that_failed_in_either_is_there_once(
    before: dict[str, int], after: dict[str, int], attempts_before: int, attempts_after: int
) -> None:
    found = compare(before, after, attempts_before, attempts_after)

    assert sorted(one.fingerprint for one in found) == sorted({*before, *after})
    assert all(
        (one.before, one.after) == (before.get(one.fingerprint, 0), after.get(one.fingerprint, 0))
        for one in found
    )
    assert compare(before, before, 5, 5) == [] or {one.change for one in compare(before, before, 5, 5)} <= {
        Change.SAME,
        Change.NEW,
    }


@pytest.mark.parametrize(
    ("handled", "failed", "told"),
    [
        ({"a": 500, "b": 500}, {"a": 9, "b": 0}, Oddity(Where.ONE, "a", 2)),
        ({"a": 0, "b": 500}, {"a": 30}, Oddity(Where.ONE, "a", 2)),
        ({"a": 500, "b": 500}, {"a": 9, "b": 12}, Oddity(Where.ALL, "", 2)),
        ({"a": 100, "b": 900}, {"a": 10, "b": 90}, Oddity(Where.ALL, "", 2)),
        ({"b": 500}, {"a": 20}, Oddity(Where.ONE, "a", 2)),
        ({"b": 500}, {"a": 19}, None),
        ({"a": 3, "b": 500, "c": 500}, {"a": 9}, None),
        ({"a": 500, "b": 500}, {"c": 6, "d": 6}, None),
        ({"a": 500, "b": 20}, {"a": 5}, Oddity(Where.ONE, "a", 2)),
        ({"a": 500, "b": 19}, {"a": 5}, None),
        # At most three times as often on one server as on another.
        ({"a": 25, "b": 75}, {"a": 75, "b": 25}, Oddity(Where.ALL, "", 2)),
        ({"a": 24, "b": 75}, {"a": 76, "b": 25}, None),
        # On two of three: neither one nor all.
        ({"a": 500, "b": 500, "c": 500}, {"a": 3, "b": 3}, None),
        # Far more often here than there: neither one nor all.
        ({"a": 500, "b": 500}, {"a": 90, "b": 2}, None),
        # Too little to conclude anything: few failures, one server, one that hardly did anything.
        ({"a": 500, "b": 500}, {"a": 4}, None),
        ({"a": 500}, {"a": 90}, None),
        ({"a": 500, "b": 3}, {"a": 90}, None),
        ({"a": 3, "b": 500}, {"a": 9}, None),
        ({}, {}, None),
    ],
)
def test_failures_point_at_a_server_only_where_the_others_did_enough(
    handled: dict[str, int], failed: dict[str, int], told: Oddity | None
) -> None:
    assert oddity(handled, failed) == told


def test_the_words_of_where_it_fails_are_those_of_the_interface() -> None:
    assert [where.value for where in Where] == ["one", "all"]


@pytest.mark.parametrize(
    ("here", "elsewhere", "tried", "told"),
    [(5, 0, 20, True), (4, 0, 20, False), (5, 1, 20, False), (5, 0, 19, False), (900, 1, 10**6, False)],
)
def test_a_kind_is_of_one_server_only_where_others_tried_enough(
    here: int, elsewhere: int, tried: int, told: bool
) -> None:
    assert alone(here, elsewhere, tried) is told
