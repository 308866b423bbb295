"""The pages that Sphinx reads: a copy of docs/, and of the root the two pages that belong to the site."""

import os
import re
import shutil
from pathlib import Path

from deploy.config import REPOSITORY

DOCS = REPOSITORY / "docs"
# Pages of the root, with their names on the site.
OF_THE_ROOT = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
LINK = re.compile(r"\[([^\]\n]*)\]\(([^)\s:]+)\)")


def write(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(DOCS, folder, ignore=shutil.ignore_patterns("__pycache__"))
    for page in sorted(DOCS.rglob("*.md")):
        _write_page(folder, page, page.relative_to(DOCS))
    for name, on_the_site in OF_THE_ROOT.items():
        _write_page(folder, REPOSITORY / name, Path(on_the_site))


def _write_page(folder: Path, page: Path, place: Path) -> None:
    text = LINK.sub(lambda found: link(page, place, found[1], found[2]), page.read_text("utf-8"))
    (folder / place).write_text(text, "utf-8")


def link(page: Path, place: Path, text: str, address: str) -> str:
    """The link as it is on the site. What leads to a file that the site does not have stays as text."""
    path, mark, heading = address.partition("#")
    if not path:
        return f"[{text}]({address})"
    there = (page.parent / path).resolve()
    if there.is_relative_to(DOCS):
        target = there.relative_to(DOCS)
    elif (name := OF_THE_ROOT.get(str(there.relative_to(REPOSITORY)))) is not None:
        target = Path(name)
    else:
        return text
    return f"[{text}]({os.path.relpath(target, place.parent)}{mark}{heading})"
