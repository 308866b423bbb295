"""Changes of the work tree: files, and of Python files the functions."""

import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.changed.functions import WHOLE, changed_in

HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", re.M)


@dataclass(frozen=True)
class Change:
    """`functions`: the bits of the lines before the change. A renamed file is two changes: tests are known by
    the old path, imports by the new one."""

    path: str
    functions: Mapping[str, int] = field(default_factory=lambda: {WHOLE: 0})


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


def _functions(repository: Path, revision: str, path: str) -> dict[str, int]:
    """Of lines that were inserted the one before them stands for them."""
    if not path.endswith(".py"):
        return {WHOLE: 0}
    old_lines, before, new_lines = set[int](), set[int](), set[int]()
    for match in HUNK.finditer(
        _git(repository, "diff", "-U0", "--no-renames", "--no-ext-diff", revision, "--", path)
    ):
        old, olds, new, news = (int(group) if group else 1 for group in match.groups())
        old_lines |= set(range(old, old + olds))
        before |= set() if olds else {old}
        new_lines |= set(range(new, new + news))
    file = repository / path
    old_source = _git(repository, "show", f"{revision}:{path}") if old_lines or before - {0} else ""
    new_source = file.read_text("utf-8") if new_lines and file.exists() else ""
    bits = changed_in(old_source, old_lines | before)
    names = {*changed_in(old_source, old_lines), *changed_in(new_source, new_lines)} or {WHOLE}
    return {name: bits.get(name, 0) for name in names}


def _git(repository: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=repository, capture_output=True, text=True, errors="replace", check=True
    )
    return done.stdout
