"""A process on another host: with a name of its own, and pids that nobody else sees."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Its own hostname, table of pids and /proc; what was started goes with the one who started it.
APART = ("unshare", "--pid", "--fork", "--mount-proc", "--uts", "--kill-child")
NAMED = 'echo "$0" >/proc/sys/kernel/hostname; exec "$@"'


class Process:
    """`pid` is the program's own, as this host sees it."""

    def __init__(self, host: str, command: list[str], environ: Mapping[str, str], log: Path) -> None:
        self._log = log
        as_root = () if os.getuid() == 0 else ("--map-root-user",)
        with log.open("w") as output:
            self._process = subprocess.Popen(
                [*APART, *as_root, "sh", "-c", NAMED, host, *command],
                env=dict(environ), cwd=ROOT, stdout=output, stderr=output, stdin=subprocess.DEVNULL,
            )  # fmt: skip
        self.pid = self._child()

    def _child(self) -> int:
        parent = self._process.pid
        while not (found := Path(f"/proc/{parent}/task/{parent}/children").read_text().split()):
            assert self._process.poll() is None, self.said()
            time.sleep(0.01)
        return int(found[0])

    def poll(self) -> int | None:
        return self._process.poll()

    def wait(self, seconds: float) -> int:
        return self._process.wait(seconds)

    def send(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def end(self, seconds: float = 20) -> None:
        """Asks it to stop, and ends it where it does not."""
        if self.poll() is None:
            self.send(signal.SIGCONT)
            self.send(signal.SIGTERM)
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        if self.poll() is None:
            self.send(signal.SIGKILL)
        self._process.wait()

    def said(self) -> str:
        return self._log.read_text()


class Hosts:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._started: list[Process] = []

    def python(self, host: str, *arguments: str, environ: Mapping[str, str]) -> Process:
        return self._start(host, [sys.executable, *arguments], environ)

    def shell(self, host: str, line: str, environ: Mapping[str, str]) -> Process:
        """One line of the Procfile."""
        return self._start(host, ["sh", "-c", f"exec {line}"], environ)

    def _start(self, host: str, command: list[str], environ: Mapping[str, str]) -> Process:
        log = self._folder / f"{len(self._started)}-{host}.log"
        process = Process(host, command, environ, log)
        self._started.append(process)
        return process

    def end_all(self) -> None:
        for process in self._started:
            process.kill()


@contextmanager
def hosts(folder: Path) -> Iterator[Hosts]:
    found = Hosts(folder)
    try:
        yield found
    finally:
        found.end_all()
