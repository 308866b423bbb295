"""README and docs: every link leads somewhere, every page is found from the README, every named test and
every named place in the code exists."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import pytest

from deploy.config import REPOSITORY
from tests.architecture.test_house import PACKAGES

PAGES = sorted([*REPOSITORY.glob("*.md"), *REPOSITORY.glob("docs/**/*.md")])
CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(([^)\s]+)\)")
# tests/x/test_y.py::test_z; then, in the same line, test_v.py beside it and ::test_w of it.
TEST = re.compile(r"(?<![\w/.*:])(?:tests/[\w/]+(?:\.\w+)?|test_\w+\.py)?(?:::\w+)*(?![\w{*])")
# `agents/liveness.py`, `dlq/trash/`, `kma/run/commit.py:Committer.carry_out`
PLACE = re.compile(rf"`((?:{'|'.join(PACKAGES)})/(?:[a-z0-9_]+/)*(?:[a-z0-9_]+\.py)?)(?::([\w.]+))?[^`\n]*`")
# What happened in files that may be gone since.
OF_THE_PAST = {"CHANGELOG.md", "track-record.md"}
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)


def links(page: Path) -> list[str]:
    found = LINK.findall(CODE.sub("", page.read_text("utf-8")))
    return [link for link in found if not re.match(r"[a-z]+:", link)]


def target(page: Path, link: str) -> Path:
    path = unquote(link.partition("#")[0])
    return (page.parent / path).resolve() if path else page


def anchors(page: Path) -> set[str]:
    """As the usual viewers of Markdown make them."""
    headings = HEADING.findall(
        re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    )
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def in_the_repository() -> set[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=REPOSITORY, capture_output=True, text=True, check=True
    ).stdout
    return {REPOSITORY / name for name in listed.split("\0") if name}


@pytest.mark.process
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
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


def named_tests(text: str) -> Iterator[tuple[str, str]]:
    """Of each test that a text names its file or folder, and what is in it: "" for all of it."""
    for line in text.splitlines():
        place = ""
        for match in TEST.finditer(line):
            named, *inside = match.group().split("::")
            if named.startswith("tests/"):
                place = named
            elif named and place:
                place = f"{place.rpartition('/')[0]}/{named}"
            if place and match.group():
                yield place, "::".join(inside)


def missing(place: str, inside: str) -> bool:
    path = REPOSITORY / place
    if not path.exists():
        return True
    return any(
        re.search(rf"^ *(?:def|class) {name}\b", path.read_text("utf-8"), re.M) is None
        for name in inside.split("::")
        if name
    )


def test_what_names_a_test_is_found() -> None:
    text = (
        "`./ma test tests/x/test_y.py::test_a[b]`, `::test_c`, `test_z.py`.\ntest_z.py, "
        "'tests/x::test_{name}'"
    )
    assert list(named_tests(text)) == [
        ("tests/x/test_y.py", "test_a"),
        ("tests/x/test_y.py", "test_c"),
        ("tests/x/test_z.py", ""),
        ("tests/x", ""),
    ]
    assert missing("tests/none.py", "") and missing("tests/deploy/test_docs_links.py", "test_of_no_name")


@pytest.mark.process
def test_every_named_test_exists() -> None:
    """In pages, and in what the code says of itself."""
    wrong = [
        f"{page.relative_to(REPOSITORY)}: {'::'.join(filter(None, named))}"
        for page in sorted(in_the_repository())
        if page.suffix in (".md", ".py", ".toml", ".java") and page != Path(__file__)
        for named in named_tests(page.read_text("utf-8"))
        if missing(*named)
    ]
    assert not wrong, "\n".join(wrong)


def is_there(place: str, name: str) -> bool:
    """Each part of the name is defined in the file, whether it has to be looked for in the part before or
    not."""
    path = REPOSITORY / place
    if not path.exists():
        return False
    return all(
        re.search(rf"^ *(?:(?:async )?def|class) {part}\b|^ *{part}\b[^=\n]*=", path.read_text("utf-8"), re.M)
        for part in name.split(".")
        if part
    )


def test_a_place_that_is_not_there_is_found() -> None:
    text = "`agents/none.py`, `kma/run/commit.py:Committer.carry_out`, `dlq/tasks.py:workers`, `agents/x y`"
    assert PLACE.findall(text) == [
        ("agents/none.py", ""),
        ("kma/run/commit.py", "Committer.carry_out"),
        ("dlq/tasks.py", "workers"),
        ("agents/", ""),
    ]
    found = [is_there(*place) for place in PLACE.findall(text)]
    assert found == [False, True, True, True]
    assert not is_there("dlq/tasks.py", "worker_of_no_name")


def test_every_place_in_the_code_that_a_page_names_exists() -> None:
    wrong = [
        f"{page.relative_to(REPOSITORY)}: {place}{name and ':'}{name}"
        for page in PAGES
        if page.name not in OF_THE_PAST
        for place, name in PLACE.findall(page.read_text("utf-8"))
        if not is_there(place, name)
    ]
    assert not wrong, "\n".join(wrong)
