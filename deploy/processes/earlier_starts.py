"""Other starts in the same data folder: one under way, and what one left whose runner was killed."""

import fcntl
import os
import signal
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from deploy.console import DeployError
from deploy.layout import Layout


@contextmanager
def only_one(layout: Layout) -> Iterator[None]:
    """The kernel gives the lock back when its holder ends, however it ends."""
    layout.make_folders()
    with (layout.run / "up.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DeployError(f"another ./ma up is starting {layout.data}: wait for it") from None
        yield


# -- processes that run although their runner was killed: found by a mark, ended ---------------------------


# Everything that one of our processes starts inherits this variable.
MARK = "MA_RUN_FOLDER"
GRACE_SECONDS = 20.0
# These write their title over their environment; a Redis of ours works in a folder that is its alone.
UNMARKED = ("redis-server", "valkey-server")


def marked(layout: Layout) -> dict[str, str]:
    return dict(os.environ) | {MARK: str(layout.run)}


def find(layout: Layout) -> list[int]:
    mark = os.fsencode(f"{MARK}={layout.run}")
    folder = os.path.realpath(layout.redis)
    return [
        pid for pid in _pids() if pid != os.getpid() and (mark in _environment(pid) or _is_redis(pid, folder))
    ]


def process_name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text(errors="replace").strip()
    except OSError:  # ended meanwhile
        return "?"


def end(layout: Layout) -> int:
    """How many there were. They get time to end by themselves first."""
    pids = find(layout)
    _signal(pids, signal.SIGTERM)
    deadline = time.monotonic() + GRACE_SECONDS
    while (left := find(layout)) and time.monotonic() < deadline:
        time.sleep(0.2)
    _signal(left, signal.SIGKILL)
    return len(pids)


def _signal(pids: Iterable[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):  # it has just ended by itself
            os.kill(pid, number)


def _pids() -> list[int]:
    return [int(folder.name) for folder in Path("/proc").iterdir() if folder.name.isdigit()]


def _is_redis(pid: int, folder: str) -> bool:
    process = Path(f"/proc/{pid}")
    try:
        ours = process.stat().st_uid == os.getuid() and process_name(pid) in UNMARKED
        return ours and str((process / "cwd").readlink()) == folder
    except OSError:  # ended meanwhile
        return False


def _environment(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:  # ended meanwhile, or another user's
        return []
