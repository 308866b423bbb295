"""./ma logs NAME: the end of a process's log; -f goes on as it grows."""

import os
import sys
import time
from collections import deque
from pathlib import Path

from deploy.config import Config
from deploy.layout import Layout
from deploy.problem import Problem

PAUSE_SECONDS = 0.3


def run(config: Config, *, name: str | None, follow: bool, lines: int) -> int:
    layout = Layout(config.data)
    known = sorted(path.stem for path in layout.logs.glob("*.log"))
    if name is None:
        print("\n".join(known))
        return 0
    if name not in known:
        raise Problem(f"there is no log {name!r}; there are: {', '.join(known) or 'none yet'}")
    try:
        _show(layout.log(name), follow=follow, lines=lines)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # `ma logs web | head` has seen enough; nothing may complain at exit either.
        sys.stdout = open("/dev/null", "w")  # noqa: SIM115 - open until the process ends
    return 0


def _show(path: Path, *, follow: bool, lines: int) -> None:
    with path.open(encoding="utf-8", errors="replace") as file:
        _print("".join(deque(file, maxlen=lines)))
        while follow and not _rotated(path, file.fileno()):
            _print(file.read())
            time.sleep(PAUSE_SECONDS)
        _print(file.read())
    if follow:
        _show(path, follow=True, lines=sys.maxsize)


def _rotated(path: Path, descriptor: int) -> bool:
    """The runner renames a log that has grown too large and begins a new one under its name."""
    try:
        return path.stat().st_ino != os.fstat(descriptor).st_ino
    except FileNotFoundError:
        return False


def _print(text: str) -> None:
    if text:
        print(text, end="", flush=True)
