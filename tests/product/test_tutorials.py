"""The tutorials of operators and of authors of agents, done as they stand there: every file is saved, every
command is run."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.handbook.blocks import DOCS, Reader, environ_of_a_person
from tests.product.house import ROOT, House

# What a person's shell has not, and the machine of the tests needs.
NEEDED = (
    "MA_PORT",
    "MA_AMQP_PORT",
    "MA_STOMP_PORT",
    "MA_CORE_PORT",
    "MA_REDIS_PORT",
    "MA_DATA",
    "MA_PIPELINE",
)


class Clone(House):
    """An installation of a copy of the repository, into which a reader saves files."""

    def __init__(self, root: Path, data: Path) -> None:
        super().__init__(data)
        self.root = root
        needed = {name: self.environ[name] for name in (*NEEDED, "JAVA_ARGS_APPEND")}
        self.environ = environ_of_a_person() | needed


@pytest.fixture
def clone(child_processes: None, tmp_path: Path) -> Iterator[Clone]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in filter(None, listed.stdout.split("\0")):
        place = tmp_path / "clone" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, place)
    (tmp_path / "clone" / ".venv").symlink_to(ROOT / ".venv")
    (tmp_path / "data").mkdir()
    clone = Clone(tmp_path / "clone", tmp_path / "data")
    try:
        clone.up()
        yield clone
    finally:
        clone.down()


def reader(clone: Clone, folder: Path) -> Reader:
    return Reader(clone.root, clone.environ, folder / "exported")


def test_the_operator_s_first_hour(clone: Clone, tmp_path: Path) -> None:
    hour = reader(clone, tmp_path)
    hour.follow(DOCS / "tutorials" / "operator.md")
    printed = "\n".join(hour.printed)
    assert "velvet" in printed and "same_version" in printed
    assert "breaker tripped" in printed and "stopped" in hour.printed[-1]


def test_the_first_agent(clone: Clone, tmp_path: Path) -> None:
    author = reader(clone, tmp_path)
    author.follow(DOCS / "tutorials" / "first-agent.md")
    assert "4 passed" in author.printed[0]

    def processed() -> int:
        (job,) = clone.call("GET", "replays/?setting=prices")["results"]
        return int(clone.call("GET", f"replays/{job['id']}/")["outcomes"]["handled"])

    clone.until("the corrected agent has processed the order", lambda: processed() == 1)
