"""Changes of the work tree: files, and of Python files the functions."""

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.changed.functions import WHOLE, changed_in

HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", re.M)


@dataclass(frozen=True)
class Change:
    """A renamed file is two of them: tests are known by the old path, imports by the new one."""

    path: str
    functions: frozenset[str] = frozenset({WHOLE})


def find(repository: Path, revision: str = "") -> tuple[str, list[Change]]:
    """The revision and what differs from it: HEAD, or its parent where the work tree is clean."""
    if not revision:
        revision = "HEAD" if _git(repository, "status", "--porcelain") else "HEAD^"
    return revision, _differing(repository, revision)


def _differing(repository: Path, revision: str) -> list[Change]:
    fields = _git(repository, "diff", "--name-status", "--no-renames", "-z", revision).split("\0")
    paths = [path for path in fields[1::2] if path]
    new = _git(repository, "ls-files", "--others", "--exclude-standard", "-z").split("\0")
    found = [Change(path, _functions(repository, revision, path)) for path in paths]
    return found + [Change(path) for path in new if path]


def _functions(repository: Path, revision: str, path: str) -> frozenset[str]:
    if not path.endswith(".py"):
        return frozenset({WHOLE})
    old_lines, new_lines = set[int](), set[int]()
    for match in HUNK.finditer(_git(repository, "diff", "-U0", "--no-renames", "--no-ext-diff", revision, "--", path)):
        old, olds, new, news = (int(group) if group else 1 for group in match.groups())
        old_lines |= set(range(old, old + olds))
        new_lines |= set(range(new, new + news))
    file = repository / path
    old_source = _git(repository, "show", f"{revision}:{path}") if old_lines else ""
    new_source = file.read_text("utf-8") if new_lines and file.exists() else ""
    return frozenset(changed_in(old_source, old_lines) | changed_in(new_source, new_lines)) or frozenset({WHOLE})


def _git(repository: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=repository, capture_output=True, text=True, errors="replace", check=True
    )
    return done.stdout
