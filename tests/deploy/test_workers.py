from types import SimpleNamespace
from typing import Any, cast

from tests.workers import TOGETHER, arrange, group


def order(seconds: dict[str, float], *tests: str) -> list[str]:
    items = [SimpleNamespace(nodeid=test) for test in tests]
    arrange(cast(Any, items), seconds)
    return [item.nodeid for item in items]


def test_what_takes_longest_begins_first() -> None:
    tests = ("a/test_short.py::test_1", "a/test_long.py::test_1", "a/test_short.py::test_2")
    assert order({"a/test_short.py": 1.0, "a/test_long.py": 9.0}, *tests) == [tests[1], tests[0], tests[2]]


def test_of_files_that_nobody_measured_the_one_with_more_tests_begins() -> None:
    tests = ("a/test_one.py::test_1", "a/test_two.py::test_1", "a/test_two.py::test_2")
    assert order({}, *tests) == [*tests[1:], tests[0]]


def test_what_shares_something_is_one_group_and_begins_before_all_others() -> None:
    first, second, *_ = folders = [prefix for prefix in TOGETHER if prefix.endswith("/")]
    tests = ("a/test_long.py::test_1", f"{second}test_b.py::test_1", f"{first}test_c.py::test_1")
    assert order({"a/test_long.py": 1000.0}, *tests) == [tests[2], tests[1], tests[0]]
    for folder in folders:
        assert group(f"{folder}test_b.py::test_1") == group(f"{folder}test_c.py::test_2") == TOGETHER[folder]


def test_a_module_is_never_divided() -> None:
    assert group("a/test_b.py::test_1[x/y::z]") == group("a/test_b.py::Case::test_2") == "a/test_b.py"
