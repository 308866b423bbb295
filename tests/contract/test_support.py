"""A site works with KMAs of its own minor version and of the one before."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contract import __version__
from contract.support import Support, support_of


@pytest.mark.parametrize(
    ("kma", "site", "support"),
    [
        ("0.10.0", "0.10.0", Support.SUPPORTED),
        ("0.10.7", "0.10.0", Support.SUPPORTED),
        ("0.9.12", "0.10.0", Support.SUPPORTED),
        ("0.8.9", "0.10.0", Support.TOO_OLD),
        ("0.0.0", "0.1.0", Support.SUPPORTED),
        ("0.11.0", "0.10.9", Support.TOO_NEW),
        ("1.9.0", "1.10.0", Support.SUPPORTED),
        ("0.99.0", "1.0.0", Support.TOO_OLD),
        ("1.0.0", "0.99.0", Support.TOO_NEW),
        ("2.3.0", "1.9.0", Support.TOO_NEW),
        ("1.9.0", "2.3.0", Support.TOO_OLD),
        ("", "0.10.0", Support.UNKNOWN),
        ("1", "0.10.0", Support.UNKNOWN),
        ("0.10", "0.10.0", Support.UNKNOWN),
        ("0.8.0-rc1", "0.10.0", Support.UNKNOWN),
        ("0.٨.0", "0.10.0", Support.UNKNOWN),
        ("0.10.0\n", "0.10.0", Support.UNKNOWN),
        ("9999999.0.0", "0.10.0", Support.UNKNOWN),
        ("0.10.0", "none", Support.UNKNOWN),
    ],
)
def test_which_versions_work_together(kma: str, site: str, support: Support) -> None:
    assert support_of(kma, site) is support


def test_the_version_of_this_tree_works_with_itself() -> None:
    assert support_of(__version__) is Support.SUPPORTED


NUMBERS = st.integers(0, 40)


@settings(max_examples=25)
@given(major=NUMBERS, minor=NUMBERS, patch=NUMBERS, other=NUMBERS, behind=NUMBERS)
def test_within_a_major_version_only_the_distance_counts(
    major: int, minor: int, patch: int, other: int, behind: int
) -> None:
    site = f"{major}.{minor + behind}.{patch}"
    expected = Support.SUPPORTED if behind < 2 else Support.TOO_OLD
    assert support_of(f"{major}.{minor}.{other}", site) is expected
    if behind:
        assert support_of(site, f"{major}.{minor}.{other}") is Support.TOO_NEW


@given(kma=st.text())
def test_whatever_a_kma_calls_itself_has_an_answer(kma: str) -> None:
    assert support_of(kma) in Support
