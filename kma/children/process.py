"""The parent's side of one child process, and the environment that it starts with: an allowlist.

Nothing here ever blocks on the child. User code runs as the same user and could read more elsewhere; the
allowlist keeps what it has no business with out of its dumps, its logs and the programs that it starts.
"""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from kma.handling import frames
from kma.handling.failure import peak_of
from kma.spool.journal import Journal

# The variable in which an operator names what his agents need besides, separated by commas.
EXTRA = "KMA_CHILD_ENV"
SECRETS = frozenset({"KMA_TOKEN", "KMA_BROKER_PASSWORD", "KMA_METRICS_TOKEN", "KMA_REDIS_URL"})
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ALLOWED = frozenset(
    {
        *("PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "LANG", "LANGUAGE", "TZ"),
        *("VIRTUAL_ENV", "LD_LIBRARY_PATH", "SSL_CERT_FILE", "SSL_CERT_DIR"),
        # Which server this is, where the sample agents may write, and the mark by which `./ma` finds
        # leftovers.
        *("KMA_SERVER", "KMA_DATA", "KMA_SAMPLES_ANYWHERE", "MA_RUN_FOLDER"),
    }
)
_FAMILIES = ("LC_", "PYTHON")
_ROOT = str(Path(__file__).resolve().parents[2])


def names_in(text: str) -> tuple[str, ...]:
    """The names of a KMA_CHILD_ENV. Raises ValueError for what is no name, or names a secret of the
    container."""
    found = tuple(part.strip() for part in text.split(",") if part.strip())
    for name in found:
        if not NAME.fullmatch(name):
            raise ValueError(f"{name!r} is not a variable name")
        if is_secret(name):
            raise ValueError(f"{name} is a secret of the KMA: it is never passed to agents")
    return found


def is_secret(name: str) -> bool:
    return name.removesuffix("_FILE") in SECRETS


def child_environment(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """The allowed part of `environ`, or of this process's, with the product importable."""
    environ = os.environ if environ is None else environ
    extra = names_in(environ.get(EXTRA, ""))
    values = {name: value for name, value in environ.items() if _is_allowed(name, extra)}
    paths = [path for path in values.get("PYTHONPATH", "").split(os.pathsep) if path]
    values["PYTHONPATH"] = os.pathsep.join([*paths, *([] if _ROOT in paths else [_ROOT])])
    return values


def _is_allowed(name: str, extra: Iterable[str]) -> bool:
    return name in _ALLOWED or name.startswith(_FAMILIES) or name in extra


_CHUNK = 256 * 1024
_GRACE = 2.0  # seconds for a process to end after its socket was closed


class ChildProcess:
    """Start it from a thread that outlives it: the kernel kills it with that thread. `entry`: the module that
    runs."""

    def __init__(self, journal: Journal, job: bytes, entry: str = "kma.handling.child") -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", entry, str(theirs.fileno()), str(journal.file), str(os.getpid())],
                pass_fds=(theirs.fileno(), journal.file),
                env=child_environment(),
                stdin=subprocess.DEVNULL,
                stdout=2,  # what user code prints belongs to the log
                start_new_session=True,  # Ctrl-C in a terminal is the parent's business; and a group to kill
            )
        ours.setblocking(False)
        self.socket = ours
        self.pid = self._process.pid
        # A descriptor of the process itself: what user code forked may keep the socket open beyond its death.
        self.death = os.pidfd_open(self.pid)
        self.started_at = time.monotonic()
        self.memory_peak = 0
        self._frames = frames.Frames()
        self._unsent: deque[memoryview] = deque()
        self.send(job)

    @property
    def busy_writing(self) -> bool:
        return bool(self._unsent)

    def send(self, data: bytes) -> None:
        """Sends what the socket takes now; `flush` sends the rest once it is writable."""
        self._unsent.append(memoryview(data))
        self.flush()

    def flush(self) -> None:
        while self._unsent:
            part = self._unsent[0]
            try:
                sent = self.socket.send(part)
            except BlockingIOError:
                return
            except OSError:
                self._unsent.clear()  # dead: its end is noticed by `death`
                return
            if sent == len(part):
                self._unsent.popleft()
            else:
                self._unsent[0] = part[sent:]

    def read(self) -> tuple[list[frames.Frame], bool]:
        """The frames that are there, and whether the child has closed its end."""
        found: list[frames.Frame] = []
        while True:
            try:
                data = self.socket.recv(_CHUNK)
            except BlockingIOError:
                return found, False
            except OSError:
                return found, True
            if not data:
                return found, True
            found.extend(self._frames.feed(data))
            if len(data) < 4096:
                return found, False  # most likely all: the next look costs a system call

    def finish(self) -> None:
        """Takes no more frames: the child ends when it has read what was sent."""
        self._unsent.clear()
        with suppress(OSError):  # it is dead already
            self.socket.shutdown(socket.SHUT_WR)

    def kill(self) -> None:
        """The process and what it started in its group."""
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            self._process.kill()

    def reap(self) -> str:
        """After its death: `exit:CODE` or `signal:NAME`. From then on `memory_peak` is known, in bytes."""
        code = self._ended()
        self.socket.close()
        os.close(self.death)
        return death_name(code)

    def _ended(self) -> int:
        try:
            _, status, usage = os.wait4(self.pid, 0)
        except ChildProcessError:  # `kill` found it dead and has asked for its end
            return self._process.wait(_GRACE)
        self.memory_peak = peak_of(usage)
        self._process.returncode = os.waitstatus_to_exitcode(status)
        return self._process.returncode


def death_name(code: int) -> str:
    if code >= 0:
        return f"exit:{code}"
    try:
        return f"signal:{signal.Signals(-code).name}"
    except ValueError:
        return f"signal:{-code}"


def death_text(name: str, at: str = "it processed the message") -> str:
    kind, _, what = name.partition(":")
    how = f"with exit code {what}" if kind == "exit" else f"by the signal {what}"
    return f"The process ended {how} while {at}."
