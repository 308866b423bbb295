"""Figures that may only get better: `approved/figures.txt` holds a line for each."""

import fcntl
import os
from collections.abc import Mapping
from pathlib import Path

from tests.architecture.approval import FOLDER

FILE = FOLDER / "figures.txt"
TO_THE_JOB = "files from the replay button to the job"
TO_THE_MOVE = "files from the job to the move"
TO_THE_ROWS = "files from a posted batch to its rows"
# Counted by tests of the site: tests/web/test_files_to_read.py, tests/web/test_unsafe_routes.py.
UNAUDITED = "unsafe routes without an audit row"
OF_THE_SITE = (TO_THE_JOB, TO_THE_MOVE, TO_THE_ROWS, UNAUDITED)


def approved(file: Path = FILE) -> dict[str, int]:
    lines = (line.rpartition(": ") for line in file.read_text("utf-8").splitlines())
    return {name: int(figure) for name, _colon, figure in lines}


def assert_no_worse(found: Mapping[str, int], file: Path = FILE) -> None:
    """A figure without a line may be 0 only. MA_TEST_APPROVE=1 keeps those found: then look at the diff."""
    if os.environ.get("MA_TEST_APPROVE") == "1":
        _keep(found, file)
    known = approved(file)
    for name, figure in found.items():
        print(f"{name:45}{known.get(name, 0):8}{figure:8}")
    assert {name: figure for name, figure in found.items() if figure > known.get(name, 0)} == {}


def _keep(found: Mapping[str, int], file: Path) -> None:
    """Tests in other processes keep theirs."""
    with file.open("r+", encoding="utf-8") as lines:
        fcntl.flock(lines, fcntl.LOCK_EX)
        kept = approved(file) | dict(found)
        lines.truncate()
        lines.write("".join(f"{name}: {figure}\n" for name, figure in kept.items()))
