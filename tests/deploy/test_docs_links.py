"""README and docs: every link leads somewhere, and every page is found from the README."""

import re
import subprocess
from pathlib import Path
from urllib.parse import unquote

import pytest

from deploy.config import REPOSITORY

PAGES = sorted([*REPOSITORY.glob("*.md"), *REPOSITORY.glob("docs/*.md")])
CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)


def links(page: Path) -> list[str]:
    found = LINK.findall(CODE.sub("", page.read_text("utf-8")))
    return [link for link in found if not re.match(r"[a-z]+:", link)]


def target(page: Path, link: str) -> Path:
    path = unquote(link.partition("#")[0])
    return (page.parent / path).resolve() if path else page


def anchors(page: Path) -> set[str]:
    """As the usual viewers of Markdown make them."""
    headings = HEADING.findall(re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def in_the_repository() -> set[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=REPOSITORY, capture_output=True, text=True, check=True
    ).stdout
    return {REPOSITORY / name for name in listed.split("\0") if name}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    files = in_the_repository()
    for link in links(page):
        assert target(page, link) in files, f"{page.name}: {link}"
        heading = link.partition("#")[2]
        assert not heading or heading in anchors(target(page, link)), f"{page.name}: {link}"


def test_every_page_is_found_from_the_readme() -> None:
    found, new = set[Path](), {REPOSITORY / "README.md"}
    while new:
        page = new.pop()
        found.add(page)
        new |= {there for link in links(page) if (there := target(page, link)).suffix == ".md"} - found
    assert set(PAGES) <= found
