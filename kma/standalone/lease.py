"""The lease of a standalone agent: without an answer of the MA it may go on only until an instant of
CLOCK_BOOTTIME, which goes on while the machine sleeps and is no matter of anybody's wall clock.

The instant stands in the header of the journal's file, shared by mapping. The run writes it; the process of
the agent looks by itself, so that it ends on time though its parent is stopped or hangs.
"""

import ctypes
import mmap
import os
import signal
import struct
import threading
import time

from kma.spool.journal import LEASE_AT

_DEADLINE = struct.Struct("<Q")  # nanoseconds of CLOCK_BOOTTIME, 0 = no lease
_LAPSED_AT = LEASE_AT + _DEADLINE.size
_LOOK = 0.2  # seconds
# The kernel's own timer, behind the watching thread's: for code that keeps the interpreter, and for a process
# that was stopped as a whole (SIGSTOP, a frozen machine). The MA waits 10 s beyond the lease before it starts
# another run.
_BACKSTOP_NS = 1_000_000_000


def boottime_ns() -> int:
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


class Lease:
    """`file`: the journal's descriptor; closed by its owner. One writer, the run's thread."""

    def __init__(self, file: int) -> None:
        self._map = mmap.mmap(file, mmap.PAGESIZE)

    @property
    def deadline_ns(self) -> int:
        return int(_DEADLINE.unpack_from(self._map, LEASE_AT)[0])

    def write(self, deadline_ns: int) -> None:
        """0 = no lease."""
        if deadline_ns != self.deadline_ns:
            self._map[LEASE_AT : LEASE_AT + _DEADLINE.size] = _DEADLINE.pack(deadline_ns)

    def over(self, now_ns: int) -> bool:
        return 0 < self.deadline_ns <= now_ns

    def lapse(self) -> None:
        """Its process says that it ends because of the lease: no failure of the agent."""
        self._map[_LAPSED_AT] = 1

    @property
    def lapsed(self) -> bool:
        return bool(self._map[_LAPSED_AT])

    def begin_anew(self) -> None:
        self._map[_LAPSED_AT] = 0

    def close(self) -> None:
        self._map.close()


class LeaseWatchdog:
    """In the agent's process: ends it, and what it started in its group, when the lease is over. Nothing is
    said to anybody: the attempt neither failed nor succeeded."""

    def __init__(self, lease: Lease) -> None:
        self._lease = lease
        self._timer = _KernelTimer()
        self._armed_ns = 0

    def start(self) -> None:
        """Returns when the guard is up; the process may be gone instead."""
        self.look()
        # The stop signal is for the main thread, which it shall wake.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        threading.Thread(target=self._watch, name="lease", daemon=True).start()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def look(self) -> float:
        """Seconds until the next look."""
        deadline_ns = self._lease.deadline_ns
        if deadline_ns != self._armed_ns:
            self._timer.set(deadline_ns + _BACKSTOP_NS if deadline_ns else 0)
            self._armed_ns = deadline_ns
        if not deadline_ns:
            return _LOOK
        left_ns = deadline_ns - boottime_ns()
        if left_ns <= 0:
            self._end()
        return min(_LOOK, left_ns / 1e9)

    def _watch(self) -> None:
        while True:
            time.sleep(self.look())

    def _end(self) -> None:
        self._lease.lapse()
        os.killpg(0, signal.SIGKILL)


class _Event(ctypes.Structure):
    _fields_ = (
        ("value", ctypes.c_void_p),
        ("signal", ctypes.c_int),
        ("notify", ctypes.c_int),  # 0 = SIGEV_SIGNAL
        ("unused", ctypes.c_byte * 48),
    )


class _Setting(ctypes.Structure):
    _fields_ = (
        ("interval_seconds", ctypes.c_long),
        ("interval_ns", ctypes.c_long),
        ("seconds", ctypes.c_long),
        ("ns", ctypes.c_long),
    )


class _KernelTimer:
    """SIGKILL for this process at an instant of CLOCK_BOOTTIME. Raises OSError where the kernel has none."""

    _ABSOLUTE = 1

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._id = ctypes.c_void_p()
        event = _Event(None, signal.SIGKILL, 0)
        self._checked(
            self._libc.timer_create(time.CLOCK_BOOTTIME, ctypes.byref(event), ctypes.byref(self._id))
        )

    def set(self, at_ns: int) -> None:
        """0 = never."""
        seconds, ns = divmod(at_ns, 1_000_000_000)
        setting = _Setting(0, 0, seconds, ns)
        self._checked(self._libc.timer_settime(self._id, self._ABSOLUTE, ctypes.byref(setting), None))

    @staticmethod
    def _checked(result: int) -> None:
        if result != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
