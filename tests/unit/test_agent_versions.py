"""Which version of an agent is older: as PEP 440 says, and for others by numbers and words."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version

from failures.error_groups.rules import is_older, version_key

# From the text of PEP 440, oldest first.
IN_ORDER = [
    "1.dev0", "1.0.dev456", "1.0a1", "1.0a2.dev456", "1.0a12.dev456", "1.0a12", "1.0b1.dev456", "1.0b2",
    "1.0b2.post345.dev456", "1.0b2.post345", "1.0rc1.dev456", "1.0rc1", "1.0", "1.0+abc.5", "1.0+abc.7",
    "1.0+5",
    "1.0.post1", "1.0-2", "1.0.post3", "1.0.post456.dev34", "1.0.post456", "1.0.post457.dev1",
    "1.0.15", "1.1.dev1", "1.10", "2", "1!0.1",
]  # fmt: skip
NUMBERS = st.integers(0, 12).map(str)
PYTHON = st.builds(
    "{}{}{}{}{}".format,
    st.lists(NUMBERS, min_size=1, max_size=3).map(".".join),
    st.sampled_from(["", "a1", "b2", "rc1", "-alpha", ".c3", "_preview_2"]),
    st.sampled_from(["", ".post1", "-2", "rev3", ".post"]),
    st.sampled_from(["", ".dev1", "dev", "-dev2"]),
    st.sampled_from(["", "+abc", "+5", "+abc.7", "+ubuntu-1"]),
)
PARTS = st.sampled_from(["release", "v", "2", "10", "2024", "-", ".", "rc", "snapshot", "blue", "é"])
ANY = st.one_of(PYTHON, st.text(max_size=12), st.lists(PARTS, max_size=6).map("".join))


def test_python_versions_are_in_the_order_of_pep_440() -> None:
    for older, newer in pairwise(IN_ORDER):
        assert version_key(older) < version_key(newer), (older, newer)
        assert is_older(older, newer) and not is_older(newer, older), (older, newer)


@given(PYTHON, PYTHON)
def test_python_versions_compare_as_packaging_compares_them(one: str, other: str) -> None:
    assert (version_key(one) < version_key(other)) == (Version(one) < Version(other))
    assert (version_key(one) == version_key(other)) == (Version(one) == Version(other))
    assert is_older(one, other) == (Version(one) < Version(other))


@given(ANY, ANY, ANY)
def test_the_order_is_total(one: str, two: str, three: str) -> None:
    a, b, c = (version_key(each) for each in (one, two, three))
    assert (a < b) + (b < a) + (a == b) == 1
    assert not (a <= b <= c) or a <= c
    assert not is_older(one, two) or (a < b and not is_older(two, one))


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("2.0-SNAPSHOT", "2.0"),
        ("2.0", "2.0-hotfix"),
        ("2.0-hotfix1", "2.0-hotfix2"),
        ("2.0-SNAPSHOT", "2.0-hotfix"),
        ("release-2.9", "release-2.10"),
        ("build 99", "build 100"),
        ("2024-11-03", "2024-11-20"),
        ("1.9-final-x", "2.0"),
        ("orders-service-1.2", "orders-service-1.2.1"),
        ("2.0-hotfix", "1!1.0"),
        ("v2.0-hotfix1", "2.0-hotfix2"),
        ("2.0-hotfix", "2.0-hotfix-x"),
        ("release-2.0-rc1", "release-2.0"),
    ],
)
def test_other_versions_are_ordered_by_their_numbers(older: str, newer: str) -> None:
    assert is_older(older, newer) and not is_older(newer, older)


@pytest.mark.parametrize(
    ("spelled", "stage"),
    [("alpha", "a"), ("beta", "b"), ("c", "rc"), ("pre", "rc"), ("preview", "rc"), ("rc", "rc")],
)
def test_a_stage_may_be_spelled_in_several_ways(spelled: str, stage: str) -> None:
    assert version_key(f"1.0{spelled}2") == version_key(f"1.0{stage}2") < version_key("1.0")


@pytest.mark.parametrize("part", ["a", ".post", ".dev"])
def test_a_part_without_its_number_has_the_number_0(part: str) -> None:
    assert version_key(f"1.0{part}") == version_key(f"1.0{part}0")


@pytest.mark.parametrize(
    "word",
    [
        "a",
        "alpha",
        "b",
        "beta",
        "c",
        "rc",
        "cr",
        "pre",
        "preview",
        "dev",
        "m",
        "milestone",
        "nightly",
        "snapshot",
    ],
)
def test_what_is_called_early_comes_before_its_release(word: str) -> None:
    assert is_older(f"2.0 {word} x", "2.0") and is_older("1.9", f"2.0 {word} x")


@pytest.mark.parametrize(
    ("version", "than"),
    [
        ("", "2.0"),
        ("1.0", ""),
        ("v2.0", "2.0.0"),
        ("3f2a1c9", "9b0c44e"),
        ("1.0", "9b0c44e"),
        ("blue-1", "green-2"),
        ("2.0-blue", "2.0-green"),
        ("2.0.post1", "2.0-hotfix"),
        ("stable", "testing"),
        ("2.0-x-y", "2.0-x-1"),
        ("2.0-SNAPSHOT", "2.0rc1"),
        ("1.0+abc", "1.0-hotfix"),
        ("0.dev1", ""),
        ("9b0c44e", "10.0"),
    ],
)
def test_what_cannot_be_compared_is_not_older(version: str, than: str) -> None:
    assert not is_older(version, than) and not is_older(than, version)
