"""A caught exception as what a protocol says about it, however long its text takes, and how much memory
its process held."""

import faulthandler
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from resource import struct_rusage
from types import TracebackType
from typing import Any, TypeVar

from contract.fingerprint import fingerprint, user_frame
from contract.messages import MAX_TRACEBACK
from contract.typed import MARK, head_and_tail, storable


def peak_bytes() -> int:
    """Of this process, 0 where the kernel does not say. Not `ru_maxrss`: that begins with what the parent
    held."""
    try:
        with Path("/proc/self/status").open("rb") as status:
            for line in status:
                if line.startswith(b"VmHWM:"):
                    return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    return 0


def peak_of(usage: struct_rusage) -> int:
    """Of a child that has ended; 0 where it may be what it had from this process, which started it."""
    peak = int(usage.ru_maxrss) * 1024
    return peak if peak > peak_bytes() else 0


MAX_TEXT = 8 * 1024
_HEADING = "Traceback (most recent call last):\n"
_MOST_FRAMES = 1000
_OWN = ("kma/handling", "kma/standalone")  # folders of what calls user code


@dataclass(frozen=True, slots=True)
class FailureDetails:
    """`exception_type` is qualified by its module, save for Python's own. `memory_peak` in bytes, 0 = not
    known."""

    exception_type: str
    text: str
    traceback: str = ""
    place: str = ""
    fingerprint: str = ""
    memory_peak: int = 0

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def describe(error: BaseException) -> FailureDetails:
    """Never raises and never hangs, whatever `error` does when it is turned into text."""
    name = type_name(type(error))
    with last_resort():
        text = head_and_tail(storable(_text(error)), MAX_TEXT)
        trace = _formatted(error, f"{name}: {text}")
    return replace(failure(name, text, trace), memory_peak=peak_bytes())


def failure(name: str, text: str, trace: str = "") -> FailureDetails:
    return FailureDetails(name, text, trace, user_frame(trace), fingerprint(name, text, trace))


def type_name(kind: type[BaseException]) -> str:
    """`KeyError`, `kma.agent.InvalidMessage`: at most 200 characters."""
    qualified = (
        kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    )
    return storable(qualified)[:200]


def _text(error: BaseException) -> str:
    def instead(second: BaseException) -> str:
        if isinstance(second, TooLong):
            return f"<no text: __str__ did not end within {CALL_SECONDS:g} s>"
        return f"<no text: {type_name(type(second))} in __str__>"

    # A subclass of str may do anything in its methods.
    return within(lambda: str.__str__(str(error)), instead)


def _formatted(error: BaseException, summary: str) -> str:
    trace = _users(error.__traceback__)

    def instead(second: BaseException) -> str:
        why = "timeout" if isinstance(second, TooLong) else type_name(type(second))
        return (
            f"{_HEADING}{_frames(trace)}{summary}\n<no causes and no source lines: {why} while "
            f"formatting them>\n"
        )

    lines = within(lambda: "".join(traceback.format_exception(type(error), error, trace)), instead)
    return head_and_tail(storable(lines), MAX_TRACEBACK - MARK)


def _frames(trace: TracebackType | None) -> str:
    """Where it was, without a line of its code: nothing here runs any of it."""
    found: list[str] = []
    while trace is not None and len(found) < _MOST_FRAMES:
        code = trace.tb_frame.f_code
        found.append(f'  File "{code.co_filename}", line {trace.tb_lineno}, in {code.co_name}\n')
        trace = trace.tb_next
    return "".join(found)


def _users(trace: TracebackType | None) -> TracebackType | None:
    """Without the container's own frames at the top: they are the same in every protocol."""
    inner = trace
    while inner is not None and _is_own(inner):
        inner = inner.tb_next
    return inner or trace


def _is_own(trace: TracebackType) -> bool:
    return str(Path(trace.tb_frame.f_code.co_filename).parent).endswith(_OWN)


# -- a bound in time for code of users that the container itself calls ---------------------------------------
# The text of an exception may never end. In the main thread an alarm raises TooLong in it, and again, in
# case it swallows that. Code that keeps the interpreter, as a long call into C does, hears no alarm, and
# some swallows every one: then the whole process ends, which is an outcome like any other (`exit:1`).


T = TypeVar("T")

CALL_SECONDS = 5.0  # for one call
AGAIN_SECONDS = 0.5  # between alarms that are swallowed
LAST_SECONDS = 30.0  # for all of them together, then the process ends

_may_end = False


class TooLong(BaseException):
    """Raised in code that takes too long. Nobody but `within` catches it on purpose."""


def may_end_this_process() -> None:
    """Said once by a process that holds nothing but one agent."""
    global _may_end
    _may_end = True


@contextmanager
def last_resort() -> Iterator[None]:
    """Ends the process when the block does not, whatever it is at; only one that said it may."""
    if not _may_end:
        yield
        return
    faulthandler.dump_traceback_later(LAST_SECONDS, exit=True)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()


def within(call: Callable[[], T], instead: Callable[[BaseException], T]) -> T:
    """What `call` returns, or `instead` of what it raises, TooLong when its time was over. Only the main
    thread can be interrupted: in another one `call` takes as long as it takes."""
    if threading.current_thread() is not threading.main_thread():
        return _caught(call, instead)
    alarm = _Alarm()
    try:
        try:
            alarm.set()
            return call()
        finally:
            alarm.armed = False
    except BaseException as error:
        return instead(error)
    finally:
        alarm.clear()


def _caught(call: Callable[[], T], instead: Callable[[BaseException], T]) -> T:
    try:
        return call()
    except BaseException as error:
        return instead(error)


class _Alarm:
    """The process has one; what an agent had set for itself goes on afterwards."""

    def __init__(self) -> None:
        self.armed = True
        self._began = time.monotonic()
        self._before = signal.getsignal(signal.SIGALRM)
        self._left, self._interval = signal.getitimer(signal.ITIMER_REAL)

    def set(self) -> None:
        signal.signal(signal.SIGALRM, self._ring)
        signal.setitimer(signal.ITIMER_REAL, CALL_SECONDS, AGAIN_SECONDS)

    def clear(self) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        # None: a handler that was not set by Python, which cannot be put back.
        signal.signal(signal.SIGALRM, self._before if self._before is not None else signal.SIG_DFL)
        if self._left:
            rest = self._left - (time.monotonic() - self._began)
            signal.setitimer(signal.ITIMER_REAL, max(rest, 1e-6), self._interval)

    def _ring(self, *_: object) -> None:
        if self.armed:
            raise TooLong
