"""Lines of pages have at most 120 characters: they are read in terminals, and compared side by side."""

import re
from pathlib import Path

import pytest

from tests.handbook.test_blocks import PAGES

MOST = 120
ADDRESS = re.compile(r"\]\([^)\s]*\)")


def too_long(line: str) -> bool:
    """Rows of tables cannot be wrapped, and neither can one long word, as a link or a picture."""
    text = line.strip()
    if len(line) <= MOST or text.startswith("|"):
        return False
    return not re.fullmatch(r"!?\[.*\]", ADDRESS.sub("]", text)) and " " in ADDRESS.sub("]", text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.name))
def test_no_line_is_longer_than_120_characters(page: Path) -> None:
    found = enumerate(page.read_text("utf-8").splitlines(), 1)
    assert [f"{number}: {line}" for number, line in found if too_long(line)] == []


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("word " * 24, False),
        ("word " * 25, True),
        ("| cell " * 25, False),
        (f"[a link](a{'b' * 120}.md)", False),
        (f"![{'a picture ' * 20}](a.png)", False),
        (f"{'word ' * 25}[a link](a.md)", True),
        (f"- [a link](a{'b' * 120}.md)", True),
    ],
)
def test_a_line_that_could_be_wrapped_is_found(line: str, expected: bool) -> None:
    assert too_long(line) is expected
