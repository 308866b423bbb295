"""The n-th call to the disk fails: real system calls of a forked process, of Python, SQLite and whatever it
starts.

The process asks the kernel (seccomp, user notification) to stop at each call that changes files. This process
counts those below one folder and lets them go on, but for the n-th. A short write is carried out here, half
of its bytes.
"""

import ctypes
import errno
import fcntl
import mmap
import os
import pickle
import platform
import select
import shutil
import socket
import struct
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# Numbers of system calls, by the name that platform.machine() has for the processor.
_NUMBERS = {
    "x86_64": {
        "write": 1, "pwrite": 18, "writev": 20, "fsync": 74, "fdatasync": 75, "ftruncate": 77, "rename": 82,
        "mkdir": 83, "unlink": 87, "openat": 257, "mkdirat": 258, "unlinkat": 263, "renameat": 264,
        "fallocate": 285, "renameat2": 316,
    },
    "aarch64": {
        "write": 64, "pwrite": 68, "writev": 66, "fsync": 82, "fdatasync": 83, "ftruncate": 46,
        "renameat": 38,
        "mkdirat": 34, "unlinkat": 35, "openat": 56, "fallocate": 47, "renameat2": 276,
    },
}  # fmt: skip
_SECCOMP = {"x86_64": 317, "aarch64": 277}
_PIDFD_OPEN, _PIDFD_GETFD = 434, 438
_GROUPS = {
    "write": ("write", "pwrite", "writev"),
    "sync": ("fsync", "fdatasync"),
    "rename": ("rename", "renameat", "renameat2"),
    "open": ("openat",),
    "room": ("fallocate", "ftruncate"),
    "unlink": ("unlink", "unlinkat"),
    "mkdir": ("mkdir", "mkdirat"),
}
_BY_PATH = {
    "rename": 0,
    "mkdir": 0,
    "unlink": 0,
    "openat": 1,
    "mkdirat": 1,
    "unlinkat": 1,
    "renameat": 1,
    "renameat2": 1,
}

_NO_NEW_PRIVILEGES, _SET_FILTER, _NEW_LISTENER = 38, 1, 8
_NOTIFY, _ALLOW = 0x7FC00000, 0x7FFF0000
_RECEIVE, _SEND = 0xC0502100, 0xC0182101
_GO_ON = 1  # SECCOMP_USER_NOTIF_FLAG_CONTINUE
_REQUEST = struct.Struct("<QIIiIQ6Q")
_RESPONSE = struct.Struct("<QqiI")
SHORT = 0  # in place of an error number


@dataclass(frozen=True, slots=True)
class Fault:
    """`calls`: one of the groups above. `lasting`: what the n-th meets, all meet after it, until `repair`."""

    calls: str
    error: int
    lasting: bool = False

    def __str__(self) -> str:
        name = errno.errorcode[self.error] if self.error else "short"
        return f"{self.calls}-{name}{'-lasting' if self.lasting else ''}"


@dataclass(slots=True)
class Outcome:
    """`failed`: the call that failed and its path, empty where fewer than n were made. `result`: what the
    scenario returned; `error`: the exception that it ended with, `trace` that one's text."""

    n: int
    folder: Path
    failed: str = ""
    result: Any = None
    error: BaseException | None = None
    trace: str = ""
    made: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return f"call {self.n} ({self.failed or 'none'}) failed; made: {self.made}; {self.trace}"


Scenario = Callable[[Path, Callable[[], None]], Any]


def each_nth(
    place: Path,
    fault: Fault,
    scenario: Scenario,
    *,
    before: Callable[[Path], Any] | None = None,
    most: int = 2000,
) -> Iterator[Outcome]:
    """`scenario(folder, repair)` in a process of its own and a new folder, for n = 1, 2, … until it makes
    fewer calls. Each run is yielded, the whole one too. `before` fills the folder. Nothing fails after
    `repair()`."""
    for n in range(1, most):
        folder = place / f"{fault}-{n}"
        folder.mkdir()
        if before is not None:
            before(folder)
        outcome = run(folder, fault, n, scenario)
        yield outcome
        shutil.rmtree(folder)
        if not outcome.failed:
            assert n > 1, f"the scenario makes no such call: {fault}"
            return
    raise AssertionError(f"more than {most} calls")


def run(folder: Path, fault: Fault, n: int, scenario: Scenario) -> Outcome:
    ours, theirs = socket.socketpair()
    repaired = mmap.mmap(-1, 1)
    child = os.fork()
    if not child:
        ours.close()
        _live(theirs, fault, folder, scenario, repaired)
    theirs.close()
    outcome = Outcome(n, folder)
    with ours:
        _, descriptors, _, _ = socket.recv_fds(ours, 1, 1)
        try:
            answer = _watch(descriptors[0], ours, outcome, fault, repaired)
        finally:
            os.close(descriptors[0])
            os.waitpid(child, 0)
    assert answer, f"the process ended without an answer: {outcome}"
    outcome.result, outcome.error, outcome.trace = pickle.loads(answer)
    return outcome


# -- the process ---------------------------------------------------------------------------------------------


def _live(parent: socket.socket, fault: Fault, folder: Path, scenario: Scenario, repaired: mmap.mmap) -> None:
    """Never returns: nothing of the test's process may be ended twice."""
    try:
        listener = _listen(fault)
        socket.send_fds(parent, [b"."], [listener])
        os.close(listener)
        answer: tuple[Any, BaseException | None, str]
        try:
            answer = scenario(folder, lambda: repaired.__setitem__(0, 1)), None, ""
        except BaseException as error:
            answer = None, error, traceback.format_exc()
        try:
            packed = pickle.dumps(answer)
            pickle.loads(packed)
        except Exception as error:
            packed = pickle.dumps((None, RuntimeError(f"{error}: {answer!r}"), answer[2]))
        parent.sendall(packed)
    finally:
        os._exit(0)


class _Line(ctypes.Structure):
    _fields_ = (
        ("code", ctypes.c_ushort),
        ("true", ctypes.c_ubyte),
        ("false", ctypes.c_ubyte),
        ("k", ctypes.c_uint32),
    )


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("lines", ctypes.POINTER(_Line)))


def _listen(fault: Fault) -> int:
    """From here on each such call of this process and its children waits for an answer through the
    descriptor."""
    numbers = [_numbers()[name] for name in _GROUPS[fault.calls] if name in _numbers()]
    lines = [_Line(0x20, 0, 0, 0)]  # load the number
    for index, number in enumerate(numbers):
        lines.append(_Line(0x15, len(numbers) - index, 0, number))  # equal: jump to the last line
    lines += [_Line(0x06, 0, 0, _ALLOW), _Line(0x06, 0, 0, _NOTIFY)]
    program = _Program(len(lines), (_Line * len(lines))(*lines))
    library = ctypes.CDLL(None, use_errno=True)
    library.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    listener = int(
        library.syscall(_SECCOMP[platform.machine()], _SET_FILTER, _NEW_LISTENER, ctypes.byref(program))
    )
    if listener < 0:
        raise OSError(ctypes.get_errno(), "no seccomp with user notification: Linux 5.6 or newer")
    return listener


def _numbers() -> dict[str, int]:
    return _NUMBERS[platform.machine()]


# -- beside it -----------------------------------------------------------------------------------------------


def _watch(listener: int, ours: socket.socket, outcome: Outcome, fault: Fault, repaired: mmap.mmap) -> bytes:
    names = {_numbers()[name]: name for name in _GROUPS[fault.calls] if name in _numbers()}
    poll = select.poll()
    poll.register(listener, select.POLLIN)
    poll.register(ours, select.POLLIN)
    answer = b""
    while True:
        for descriptor, event in poll.poll():
            if descriptor == ours.fileno():
                if not (piece := ours.recv(1 << 20)):
                    return answer
                answer += piece
            elif event & select.POLLIN:
                _decide(listener, names, outcome, fault, repaired)
            else:
                poll.unregister(listener)


def _decide(
    listener: int, names: dict[int, str], outcome: Outcome, fault: Fault, repaired: mmap.mmap
) -> None:
    request = bytearray(_REQUEST.size)
    try:
        fcntl.ioctl(listener, _RECEIVE, request, True)
    except OSError as problem:
        if problem.errno == errno.ENOENT:  # a signal came between: the call is made again
            return
        raise
    identity, pid, _, number, _, _, *arguments = _REQUEST.unpack(request)
    value, error = 0, 0
    made = _path(pid, names[number], arguments, outcome.folder)
    if made and not repaired[0]:
        outcome.made.append(f"{names[number]} {made}")
        if len(outcome.made) == outcome.n or (fault.lasting and len(outcome.made) > outcome.n):
            outcome.failed = outcome.failed or outcome.made[-1]
            if fault.error:
                error = -fault.error
            else:
                value = _write_half(pid, names[number], arguments)
    response = bytearray(_RESPONSE.pack(identity, value, error, 0 if value or error else _GO_ON))
    try:
        fcntl.ioctl(listener, _SEND, response, True)
    except OSError as problem:
        if problem.errno != errno.ENOENT:
            raise


def _path(pid: int, name: str, arguments: list[int], folder: Path) -> str:
    """Relative to the folder; empty where the call is about something else, or changes nothing."""
    if name == "openat" and not arguments[2] & (os.O_CREAT | os.O_WRONLY | os.O_RDWR | os.O_TRUNC):
        return ""
    try:
        if name in _BY_PATH:
            path = _text(pid, arguments[_BY_PATH[name]])
        else:
            path = os.readlink(f"/proc/{pid}/fd/{arguments[0]}")
    except OSError:
        return ""
    top = f"{folder}/"
    return path.removeprefix(top) if path.startswith(top) else "." if path == str(folder) else ""


def _text(pid: int, address: int) -> str:
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        memory.seek(address)
        return (memory.read(512) or b"").partition(b"\0")[0].decode(errors="replace")


def _write_half(pid: int, name: str, arguments: list[int]) -> int:
    """What the kernel does when there is no more room, or a signal comes."""
    descriptor, address, size, offset = arguments[:4]
    half = size // 2
    if name == "writev" or not half:
        return 0
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        memory.seek(address)
        some = memory.read(half)
    call = ctypes.CDLL(None, use_errno=True).syscall
    process = call(_PIDFD_OPEN, pid, 0)
    try:
        file = call(_PIDFD_GETFD, process, descriptor, 0)
        if file < 0:
            raise OSError(ctypes.get_errno(), "a descriptor of the process cannot be had")
        try:
            return os.pwrite(file, some, offset) if name == "pwrite" else os.write(file, some)
        finally:
            os.close(file)
    finally:
        os.close(process)
