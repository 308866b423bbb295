"""A copy of the repository with an installation of its own, into which a reader saves files."""

import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.handbook.blocks import Reader, environ_of_a_person
from tests.product.house import PORTS, ROOT, House

# What a person's shell has not, and the machine of the tests needs.
NEEDED = (*PORTS, "MA_DATA", "MA_PIPELINE", "JAVA_ARGS_APPEND")


class Clone(House):
    def __init__(self, root: Path, data: Path, **environ: str) -> None:
        super().__init__(data)
        self.root = root
        needed = {name: self.environ[name] for name in NEEDED}
        self.environ = environ_of_a_person() | needed | environ

    def reader(self, state: Path, instead: Mapping[str, str] | None = None) -> Reader:
        """Somebody at a shell in its folder. Pages have the default ports."""
        return Reader(self.root, self.environ, state, self.addresses() | dict(instead or {}))

    def addresses(self) -> dict[str, str]:
        names = {"8000": "MA_PORT", "5672": "MA_AMQP_PORT", "6379": "MA_REDIS_PORT"}
        return {f"127.0.0.1:{port}": f"127.0.0.1:{self.environ[name]}" for port, name in names.items()}


@contextmanager
def started(folder: Path, **environ: str) -> Iterator[Clone]:
    """It runs, with the demo, and is ended afterwards."""
    copy(folder / "clone")
    (folder / "clone" / ".venv").symlink_to(ROOT / ".venv")
    (folder / "data").mkdir()
    # Where pages expect it.
    (folder / "clone" / "var").symlink_to(folder / "data")
    clone = Clone(folder / "clone", folder / "data", **environ)
    try:
        clone.up()
        yield clone
    finally:
        clone.down()


def copy(folder: Path) -> None:
    """What git has, as it stands here."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in filter(None, listed.stdout.split("\0")):
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, place)
