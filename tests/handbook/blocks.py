"""Fenced blocks of pages, and how their commands are run."""

import os
import re
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from deploy.config import REPOSITORY

DOCS = REPOSITORY / "docs"
# ```sh repeat: a person repeats it until it succeeds.
BLOCK = re.compile(r"^```(sh|python)(?: ([^\n]+))?\n(.*?)^```$", re.DOTALL | re.MULTILINE)
REPEAT = "repeat"
# Of the whole product, where other tests use the machine, too.
PATIENCE_SECONDS = 300


@dataclass(frozen=True, slots=True)
class Block:
    page: str
    language: str
    options: str
    text: str

    @property
    def file(self) -> str:
        return self.options.removeprefix("file=") if self.options.startswith("file=") else ""


def blocks(page: Path) -> Iterator[Block]:
    for language, options, text in BLOCK.findall(page.read_text("utf-8")):
        yield Block(str(page.relative_to(DOCS)), language, options, text)


class Reader:
    """Does what a page says: saves its files in `folder`, runs its commands there, and keeps what they
    export."""

    def __init__(self, folder: Path, environ: Mapping[str, str], state: Path) -> None:
        self.folder, self.state = folder, state
        self.environ = dict(environ)
        self.printed: list[str] = []

    def follow(self, page: Path) -> None:
        for block in blocks(page):
            if block.file:
                (self.folder / block.file).write_text(block.text, "utf-8")
            elif block.language == "sh":
                self.printed.append(self._run(block))

    def _run(self, block: Block) -> str:
        deadline = time.monotonic() + PATIENCE_SECONDS
        script = f'set -e\n{block.text}\nexport -p > "$STATE"\n'
        before = f". {self.state}\n" if self.state.exists() else ""
        while True:
            done = subprocess.run(
                ["bash", "-c", before + script],
                cwd=self.folder, env=self.environ | {"STATE": str(self.state)}, stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=900,
            )  # fmt: skip
            if done.returncode == 0:
                return done.stdout
            assert block.options == REPEAT and time.monotonic() < deadline, (
                f"{block.page}:\n{block.text}\n{done.stdout}"
            )
            time.sleep(1)


def environ_of_a_person() -> dict[str, str]:
    """Without what the tests set for themselves."""
    own = ("MA_", "KMA_", "DJANGO_", "PYTEST_")
    return {name: value for name, value in os.environ.items() if not name.startswith(own)}
