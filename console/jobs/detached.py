"""Processes of this host: which one is meant by a pid that may be given out again, what a run has started,
its end."""

import os
import signal
import socket
import time
from contextlib import suppress
from pathlib import Path

# Everything that a run starts inherits this variable: so it is found whoever its parent was.
MARK = "MA_PIPELINE_RUN"
GRACE_SECONDS = 5.0


def host() -> str:
    return socket.gethostname()


def started(pid: int) -> str:
    """Returns when it was started, in a form that no other process has: the boot and the clock ticks since.
    Empty: there is no such process, or it has ended and nobody asked for its end yet."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
    return "" if fields[0] in ("Z", "X") else f"{boot}/{fields[19]}"


def identity() -> str:
    """This process among those of all machines: the kernel that runs, the table of pids that it is in, pid
    and start. Empty: it cannot be told."""
    pid = os.getpid()
    machine, at = _machine(), started(pid)
    return f"{machine}/{pid}/{at}" if machine and at else ""


def is_gone(identity: str) -> bool:
    """Returns whether that process was of this machine and has ended. Of other machines nothing is known."""
    machine = _machine()
    if not machine or not identity.startswith(f"{machine}/"):
        return False
    pid, _, at = identity.removeprefix(f"{machine}/").partition("/")
    if found := started(int(pid)):
        return found != at
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except PermissionError:  # another user's, where /proc hides those
        return False
    return True  # it has ended, and nobody asked for its end yet


def _machine() -> str:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""


def of_run(run: object) -> list[int]:
    """Pids of what carries the mark of this run, without this process."""
    mark = os.fsencode(f"{MARK}={run}")
    return [pid for pid in _pids() if pid != os.getpid() and mark in _environment(pid)]


def memory_of(pids: list[int]) -> int:
    """Bytes that they hold together; what several share is counted once."""
    return sum(_held(pid) for pid in pids)


def end(run: object, grace: float = GRACE_SECONDS) -> int:
    """Ends what a run has started on this host; how many there were. They get time to end by themselves
    first."""
    found = of_run(run)
    _signal(found, signal.SIGTERM)
    until = time.monotonic() + grace
    while (left := of_run(run)) and time.monotonic() < until:
        time.sleep(0.05)
    until = time.monotonic() + grace
    while left and time.monotonic() < until:
        _signal(left, signal.SIGKILL)
        time.sleep(0.02)
        left = of_run(run)
    return len(found)


def _held(pid: int) -> int:
    with suppress(OSError, ValueError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0


def _signal(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def _pids() -> list[int]:
    return [int(folder.name) for folder in Path("/proc").iterdir() if folder.name.isdigit()]


def _environment(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:  # ended meanwhile, or another user's
        return []


def environment() -> dict[str, str]:
    """Returns what this process inherited, for one that it starts."""
    return dict(os.environ)
