"""The command `kma`, as a host starts it: what it reads before it begins."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from contract import __version__
from deploy.config import REPOSITORY

pytestmark = pytest.mark.process


def kma(*arguments: str, **environ: str) -> "subprocess.CompletedProcess[str]":
    """Without what a KMA needs to run, so that it ends."""
    bare = {"PATH": os.defpath, "LANG": "C.UTF-8", "KMA_ENV_FILE": "", **environ}
    command = [sys.executable, "-m", "kma", *arguments]
    return subprocess.run(command, cwd=REPOSITORY, env=bare, capture_output=True, text=True, timeout=60)


def test_it_says_its_version_and_nothing_else_may_be_asked() -> None:
    assert kma("--version").stdout == f"{__version__}\n"
    refused = kma("--verbose")
    assert refused.returncode != 0 and "usage: kma [--version]" in refused.stderr


@pytest.mark.parametrize("quote", ["", "'", '"'])
def test_quotes_of_the_file_are_no_part_of_a_value(quote: str, tmp_path: Path) -> None:
    """As systemd reads the same file. What is wrong is said with its value, which shows what was read."""
    file = tmp_path / "kma.env"
    file.write_text(f"# of srv-1\n\nMA_URL={quote}ftp://one{quote}\n")
    done = kma(KMA_ENV_FILE=str(file))
    assert done.returncode == 78
    assert done.stderr.splitlines()[1].endswith(" 'ftp://one'"), done.stderr


def test_the_environment_counts_before_the_file(tmp_path: Path) -> None:
    file = tmp_path / "kma.env"
    file.write_text("MA_URL=ftp://one\nKMA_LOG_LEVEL=loud\n")
    said = kma(KMA_ENV_FILE=str(file), MA_URL="ftp://two").stderr
    assert "ftp://two" in said and "ftp://one" not in said and "'LOUD'" in said


@pytest.mark.parametrize(
    ("text", "problem"), [("MA_URL http://x\n", "line 1: not NAME=value"), (None, "cannot be read")]
)
def test_a_file_that_cannot_be_used_is_named(text: str | None, problem: str, tmp_path: Path) -> None:
    file = tmp_path / "kma.env"
    if text is not None:
        file.write_text(text)
    done = kma(KMA_ENV_FILE=str(file))
    assert done.returncode == 1 and problem in done.stderr and str(file) in done.stderr
