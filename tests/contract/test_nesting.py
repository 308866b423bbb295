"""How deep a value nests, counted level by level."""

from typing import Any

import pytest

from contract.nesting import DEEPEST, deeper_than


@pytest.mark.parametrize(
    ("value", "depth"),
    [
        (None, 0),
        ("[[[", 0),
        (7, 0),
        ([], 1),
        ({}, 1),
        ([1, "a", None], 1),
        ({"a": 1}, 1),
        ([[]], 2),
        ({"a": {}}, 2),
        ([1, {"a": [2]}, []], 3),
        ({"a": 1, "b": [[1], {"c": []}]}, 4),
    ],
)
def test_lists_and_mappings_count_and_nothing_else(value: Any, depth: int) -> None:
    assert [deeper_than(value, most) for most in range(6)] == [most < depth for most in range(6)]


def test_a_value_too_deep_for_any_recursion_is_known_as_deep() -> None:
    value: Any = []
    for _ in range(100_000):
        value = [value]
    assert deeper_than(value, DEEPEST)
    while value:  # taken apart: freeing it whole would recurse as deep
        value = value.pop()


def test_the_bound_is_far_above_what_is_ours() -> None:
    assert DEEPEST == 100
