"""Two sessions of pytest that take portions from one queue, static checks beside them, and one bound of
time."""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any

from tests.changed import worker
from tests.changed.order import Portion

# Seconds on the wall. What began before the first one may end before the second one.
LIMIT = 110.0
NO_MORE_TESTS = 104.0
TO_CLEAN_UP = 5.0
POLL = 0.2
# Longer texts of failures hide the first ones.
MOST_SHOWN, LONGEST_SHOWN, LONGEST_OUTPUT = 10, 4000, 800

CHECKS = (
    ("ruff", "ruff", "check", "-q", "."),
    ("format", "ruff", "format", "--check", "-q", "."),
    ("imports", "lint-imports", "--no-logo"),
    ("mypy", "mypy"),
)


class Run:
    """What has happened so far; several threads write to it."""

    def __init__(self, say: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self.say = say
        self.clock = clock
        self.started = clock()
        self.ordered = Event()
        self.queue: deque[Portion] = deque()
        self.named: dict[str, list[str]] = {}
        self.collected: dict[str, set[str]] = {}
        self.done: set[str] = set()
        self.failed: dict[str, str] = {}
        self.unfinished: list[str] = []
        self.lock = Lock()

    @property
    def seconds(self) -> float:
        return self.clock() - self.started

    def left(self, bound: float) -> float:
        return max(0.0, bound - self.seconds)

    def order(self, portions: Sequence[Portion]) -> None:
        """Lets the sessions begin; they have started meanwhile."""
        self.queue.extend(portions)
        for portion in portions:
            self.named.setdefault(portion.file, []).extend(portion.names or ())
        self.ordered.set()

    def take(self) -> dict[str, Any] | None:
        self.ordered.wait()
        with self.lock:
            if not self.queue or not self.left(NO_MORE_TESTS):
                return None
            portion = self.queue.popleft()
        without = [] if portion.names else self.named[portion.file]
        return {"file": portion.file, "names": portion.names, "without": without}

    def fail(self, name: str, text: str, output: str = "") -> None:
        with self.lock:
            first = name not in self.failed
            self.failed.setdefault(name, text)
            if first and len(self.failed) <= MOST_SHOWN:
                self.say(
                    f"\nFAILED {name} after {self.seconds:.0f} "
                    f"s\n{text[-LONGEST_SHOWN:]}\n{output[-LONGEST_OUTPUT:]}"
                )

    def hear(self, message: Mapping[str, Any]) -> None:
        if (file := message.get("collected")) is not None:
            self.collected[file] = set(message["names"])
        elif (name := message.get("done")) is not None:
            self.done.add(name)
        elif (name := message.get("failed")) is not None:
            self.fail(name, message["text"], message.get("sections", ""))


def environment() -> dict[str, str]:
    """Without what git sets for a hook: tests make repositories of their own."""
    settings = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return settings | {"PATH": f"{Path(sys.executable).parent}:{os.environ.get('PATH', os.defpath)}"}


def check(run: Run, repository: Path) -> None:
    for name, *command in CHECKS:
        with subprocess.Popen(
            command,
            cwd=repository,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process:
            try:
                output, _ = process.communicate(timeout=run.left(LIMIT))
            except subprocess.TimeoutExpired:
                process.kill()
                run.unfinished.append(name)
                continue
        if process.returncode:
            run.fail(name, output)


def session(run: Run, repository: Path, arguments: Sequence[str]) -> None:
    """One session of pytest, until the queue is empty or the time is over."""
    ours, theirs = socket.socketpair()
    settings = {worker.CONNECTION: str(theirs.fileno()), worker.UNTIL: str(run.started + NO_MORE_TESTS)}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        "-p",
        "tests.changed.worker",
        "--tb=short",
    ]
    with tempfile.TemporaryFile("w+") as output, ours, ours.makefile("rw") as stream:
        process = subprocess.Popen(
            [*command, *arguments],
            cwd=repository,
            env=environment() | settings,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            pass_fds=[theirs.fileno()],
        )
        theirs.close()
        bound = Thread(target=_stop, args=(process, run), daemon=True)
        bound.start()
        running = _converse(run, stream)
        code = process.wait()
        bound.join()
        if run.left(LIMIT) and code not in (0, 1, 5):
            output.seek(0)
            run.fail(running or "a session of pytest", f"it ended with code {code}:\n{output.read()}")
        elif running:
            run.unfinished.append(running)


def _converse(run: Run, stream: Any) -> str:
    """Returns the test in which the session ended, if any."""
    running = ""
    with suppress(OSError, ValueError):
        for line in stream:
            message = json.loads(line)
            if message.get("want"):
                stream.write(json.dumps(run.take()) + "\n")
                stream.flush()
            else:
                running = message.get("started", "" if "done" in message else running)
                run.hear(message)
    return running


def _stop(process: subprocess.Popen[bytes], run: Run) -> None:
    """An interrupted session cleans up; one that does not is killed."""
    for bound, number in ((LIMIT, signal.SIGINT), (LIMIT + TO_CLEAN_UP, signal.SIGKILL)):
        while run.left(bound):
            with suppress(subprocess.TimeoutExpired):
                process.wait(POLL)
                return
        process.send_signal(number)


def counted(names: Collection[str]) -> Counter[str]:
    """Tests of each file."""
    return Counter(name.partition("::")[0] for name in names)
