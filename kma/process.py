"""The parent's side of one child process. Nothing here ever blocks on the child."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from contextlib import suppress

from kma import frames
from kma.child_environment import child_environment
from kma.journal import Journal
from kma.memory import peak_of

_CHUNK = 256 * 1024
_GRACE = 2.0  # seconds for a process to end after its socket was closed


class ChildProcess:
    """Start it from a thread that outlives it: the kernel kills it with that thread. `entry`: the module that
    runs."""

    def __init__(self, journal: Journal, job: bytes, entry: str = "kma.child") -> None:
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


def death_text(name: str, at: str = "it handled the message") -> str:
    kind, _, what = name.partition(":")
    how = f"with exit code {what}" if kind == "exit" else f"by the signal {what}"
    return f"The process ended {how} while {at}."
