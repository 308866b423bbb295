"""Fenced blocks of pages, and how their commands are run."""

import os
import re
import signal
import subprocess
import textwrap
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from deploy.config import REPOSITORY

DOCS = REPOSITORY / "docs"
# Also within a list, where the fence is indented.
FENCE = re.compile(r"^( *)```(\S*)(?: ([^\n]+))?\n(.*?)^\1```$", re.DOTALL | re.MULTILINE)
HEADING = re.compile(r"^## (.+)$", re.MULTILINE)
# ```sh repeat: a person repeats it until it succeeds.
REPEAT = "repeat"
# ```sh service=NAME: it goes on in a terminal of its own.
SERVICE = "service="
RUN = ("sh", "python")
# Of the whole product, where other tests use the machine, too.
PATIENCE_SECONDS = 300
STOP_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Block:
    page: str
    section: str
    language: str
    options: str
    text: str

    def option(self, name: str) -> str:
        return self.options.removeprefix(name) if self.options.startswith(name) else ""


def fences(page: Path) -> Iterator[Block]:
    text = page.read_text("utf-8")
    headings = [(match.start(), match[1]) for match in HEADING.finditer(text)]
    name = str(page.relative_to(DOCS if page.is_relative_to(DOCS) else REPOSITORY))
    for match in FENCE.finditer(text):
        section = next((title for place, title in reversed(headings) if place < match.start()), "")
        yield Block(name, section, match[2], match[3] or "", textwrap.dedent(match[4]))


def blocks(page: Path) -> Iterator[Block]:
    """Its commands and programs."""
    return (fence for fence in fences(page) if fence.language in RUN)


class Reader:
    """Does what a page says: saves its files in `folder`, runs its commands there, and keeps what they
    export. `instead` has what stands on a page for what a reader has of one's own, as an address."""

    def __init__(
        self, folder: Path, environ: Mapping[str, str], state: Path, instead: Mapping[str, str] | None = None
    ) -> None:
        self.folder, self.state = folder, state
        self.environ = dict(environ) | {"STATE": str(state)}
        self.instead = dict(instead or {})
        self.printed: list[str] = []
        self._services: dict[str, subprocess.Popen[bytes]] = {}

    def follow(self, page: Path, *sections: str) -> None:
        """The whole page, or these sections of it."""
        found = [block for name in sections for block in self.blocks(page, name)] or list(blocks(page))
        for block in found:
            self.do(block)

    def blocks(self, page: Path, section: str) -> list[Block]:
        found = [block for block in blocks(page) if block.section == section]
        assert found, f"{page.name}: {section}"
        return found

    def do(self, block: Block) -> None:
        if file := block.option("file="):
            (self.folder / file).write_text(block.text, "utf-8")
        elif block.language == "sh" and block.option(SERVICE):
            self._begin(block)
        elif block.language == "sh":
            self.printed.append(self._run(block))

    def interrupt(self, name: str) -> None:
        """Ctrl-C in the terminal of a service."""
        service = self._services.pop(name)
        os.killpg(service.pid, signal.SIGINT)
        try:
            service.wait(STOP_SECONDS)
        finally:
            _end(service)

    def close(self) -> None:
        while self._services:
            self.interrupt(next(iter(self._services)))

    def _begin(self, block: Block) -> None:
        with (self.state.parent / f"{self.state.name}.{block.option(SERVICE)}").open("wb") as log:
            self._services[block.option(SERVICE)] = subprocess.Popen(
                ["bash", "-c", f"{self._before()}exec {self._text(block)}"],
                cwd=self.folder, env=self.environ, stdin=subprocess.DEVNULL, stdout=log,
                stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip

    def _run(self, block: Block) -> str:
        deadline = time.monotonic() + PATIENCE_SECONDS
        script = f'{self._before()}set -e\n{self._text(block)}\nexport -p > "$STATE"\n'
        while True:
            done = subprocess.run(
                ["bash", "-c", script],
                cwd=self.folder, env=self.environ, stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=900,
            )  # fmt: skip
            if done.returncode == 0:
                return done.stdout
            assert block.options == REPEAT and time.monotonic() < deadline, (
                f"{block.page}:\n{block.text}\n{done.stdout}"
            )
            time.sleep(1)

    def _text(self, block: Block) -> str:
        text = block.text
        for there, here in self.instead.items():
            text = text.replace(there, here)
        return text

    def _before(self) -> str:
        return f". {self.state}\n" if self.state.exists() else ""


def _end(service: "subprocess.Popen[bytes]") -> None:
    """With all that it started."""
    try:
        os.killpg(service.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    service.wait()


def environ_of_a_person() -> dict[str, str]:
    """Without what the tests set for themselves."""
    own = ("MA_", "KMA_", "DJANGO_", "PYTEST_")
    return {name: value for name, value in os.environ.items() if not name.startswith(own)}
