"""A bound in time for the code of users that the container itself calls: the text of an exception may never
end.

In the main thread an alarm raises TooLong in it, and again, in case it swallows that. Code that keeps the
interpreter, as a long call into C does, hears no alarm, and some swallows every one: then the whole process
ends, which is an outcome like any other (`exit:1`).
"""

import faulthandler
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")

SECONDS = 5.0  # for one call
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
        signal.setitimer(signal.ITIMER_REAL, SECONDS, AGAIN_SECONDS)

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
