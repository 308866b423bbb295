"""What is missing between the mark of a spool and the numbers of a batch."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from failures.intake.gaps import gaps, newest_gaps, size


@pytest.mark.parametrize(
    ("mark", "numbers", "missing"),
    [
        (0, [], []),
        (0, [1, 2, 3], []),
        (0, [10], [(1, 9)]),
        (7, [8, 10, 11, 20], [(9, 9), (12, 19)]),
        (0, [2**63 - 1], [(1, 2**63 - 2)]),
    ],
)
def test_what_is_passed_over_is_a_gap(mark: int, numbers: list[int], missing: list[tuple[int, int]]) -> None:
    assert list(gaps(mark, numbers)) == missing


@given(st.integers(0, 50), st.sets(st.integers(1, 100), max_size=40))
def test_gaps_and_numbers_are_together_all_up_to_the_last(mark: int, ahead: set[int]) -> None:
    numbers = sorted(mark + number for number in ahead)
    found = list(gaps(mark, numbers))
    missing = [number for first, last in found for number in range(first, last + 1)]
    assert sorted([*numbers, *missing]) == list(range(mark + 1, max(numbers, default=mark) + 1))
    assert size(found) == len(missing)


def test_a_spool_keeps_the_newest_gaps() -> None:
    kept = newest_gaps([[1, 1]], [(number, number) for number in range(3, 43, 2)])
    assert len(kept) == 20 and kept[0] == [3, 3] and kept[-1] == [41, 41]
