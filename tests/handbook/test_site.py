"""The documentation site is built strictly, and reads nothing from other hosts."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from contract import __version__
from deploy.config import REPOSITORY
from handbook.__main__ import STRICT
from handbook.markdown import plain
from tests.architecture.approval import FOLDER as APPROVED

# The first test waits for the build, where others use the machine, too.
pytestmark = [pytest.mark.process, pytest.mark.timeout(900)]

# What a browser loads by itself; <a href> is followed by people only.
LOADED = re.compile(
    r"<(?:script|img|iframe|source)\b[^>]*?\bsrc=\"([^\"]+)\"|<link\b[^>]*?\bhref=\"([^\"]+)\""
)
BY_STYLES = re.compile(r"(?:@import\s+|url\()['\"]?((?:https?:)?//[^'\")]+)")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "handbook", str(folder)]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder / "html"


def test_the_site_is_built_without_a_warning(site: Path) -> None:
    pages = {path.relative_to(site).with_suffix("") for path in site.rglob("*.html")}
    written = {
        path.relative_to(REPOSITORY / "docs").with_suffix("") for path in REPOSITORY.glob("docs/**/*.md")
    }
    assert written <= pages


@pytest.mark.parametrize(
    "text", ["[nothing](nothing.md)", "[nothing](#nothing)", "![nothing](nothing.svg)", "{doc}`nothing`"]
)
def test_a_reference_to_nothing_fails_the_build(tmp_path: Path, text: str) -> None:
    shutil.copy(REPOSITORY / "docs" / "conf.py", tmp_path)
    (tmp_path / "index.md").write_text(f"# A page\n\n{text}\n")
    command = [sys.executable, "-m", "sphinx", *STRICT, "-b", "dummy", str(tmp_path), str(tmp_path / "out")]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert (done.returncode, "nothing" in done.stderr) == (1, True), done.stderr


def test_every_route_has_its_section_with_an_example(site: Path) -> None:
    """As the approved list has them."""
    text = "\n".join(
        path.read_text("utf-8") for path in (site.parent / "source/reference/routes").glob("*.md")
    )
    approved = (APPROVED / "rest.txt").read_text().splitlines()
    assert approved
    for line in approved:
        method, path = line.split()[:2]
        assert f"## {method} {plain(path)}\n" in text, line
    assert text.count("```sh") == len(approved)


def test_a_page_in_no_table_of_contents_fails_the_build(tmp_path: Path) -> None:
    shutil.copy(REPOSITORY / "docs" / "conf.py", tmp_path)
    (tmp_path / "index.md").write_text("# A page\n\n[other](other.md)\n")
    (tmp_path / "other.md").write_text("# Another page\n")
    command = [sys.executable, "-m", "sphinx", *STRICT, "-b", "dummy", str(tmp_path), str(tmp_path / "out")]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert (done.returncode, "other.md" in done.stderr) == (1, True), done.stderr


def test_pages_load_nothing_from_other_hosts(site: Path) -> None:
    found = [
        f"{path.relative_to(site)}: {address}"
        for path in site.rglob("*.html")
        for match in LOADED.finditer(path.read_text("utf-8"))
        if re.match(r"(https?:)?//", address := match[1] or match[2])
    ]
    found += [
        f"{path.relative_to(site)}: {address}"
        for path in site.rglob("*.css")
        for address in BY_STYLES.findall(path.read_text("utf-8"))
    ]
    assert not found, "\n".join(found)
    assert LOADED.search((site / "index.html").read_text("utf-8"))


def test_each_title_has_the_version(site: Path) -> None:
    for path in site.rglob("*.html"):
        assert f"MA and KMA {__version__}</title>" in path.read_text("utf-8"), path.name


def test_the_search_finds_words_without_a_server(site: Path) -> None:
    index = (site / "searchindex.js").read_text("utf-8")
    assert '"how-to/operations"' in index and "quorum" in index
