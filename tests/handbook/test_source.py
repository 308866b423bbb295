"""Links of the pages, as they are on the site."""

from pathlib import Path

import pytest

from handbook.source import DOCS, link


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("#a-verb", "[text](#a-verb)"),
        ("console.md#lists", "[text](console.md#lists)"),
        ("../images/architecture.svg", "[text](../images/architecture.svg)"),
        ("../../CONTRIBUTING.md", "[text](../contributing.md)"),
        ("../../CHANGELOG.md#090", "[text](../changelog.md#090)"),
        ("../../contract/records.py", "text"),
    ],
)
def test_a_link_leads_to_the_same_page_or_stays_as_text(address: str, expected: str) -> None:
    place = Path("architecture/adding.md")
    assert link(DOCS / place, place, "text", address) == expected


def test_a_page_of_the_root_links_into_the_site() -> None:
    page = DOCS.parent / "CONTRIBUTING.md"
    assert link(page, Path("contributing.md"), "tests", "docs/testing.md") == "[tests](testing.md)"
