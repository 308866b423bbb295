"""Catches slow calls inside a transaction of the product: a broker, HTTP, Redis, a file, a process, a sleep.

Whoever waits there holds its locks: on SQLite the one lock of the whole site, on PostgreSQL rows that others
wait for. The calls are caught where they leave Python, so whoever adds one need not know of this. Libraries
of databases do not pass here. The broker in memory stands for a real one, so questions to it are caught as
well. What other processes do, as the feed or gunicorn, is not seen; nor is what another thread does while a
transaction waits for it.
"""

import os
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from types import FrameType
from typing import Any

from django.apps import apps
from django.db import connections

from broker.memory.broker import MemoryBrowser, MemoryPublisher
from broker.memory.management import MemoryManagement

REPOSITORY = Path(__file__).resolve().parent.parent
SENDING = ("send", "sendall", "sendto", "sendmsg", "connect")
ASKING, BROWSING = ("call", "attribute", "attributes"), ("browse", "walk")
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
FRAMES = 12

_found: list[str] = []
_looking = threading.local()


def install() -> None:
    """Once per process, before Django is set up: modules take `sleep` by its name. It stays."""
    sys.addaudithook(_on_event)
    time.sleep = _noted(time.sleep)  # type: ignore[assignment]  # its parameter has no name
    watched = {
        socket.socket: SENDING,
        MemoryManagement: ASKING,
        MemoryPublisher: ("publish",),
        MemoryBrowser: BROWSING,
    }
    for owner, names in watched.items():
        for name in names:
            setattr(owner, name, _watched(getattr(owner, name)))


def take() -> list[str]:
    """What was found since the last time."""
    found, _found[:] = list(_found), []
    return found


def _on_event(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "subprocess.Popen":
        note("starts a process")
    elif (
        event == "open"
        and isinstance(arguments[2], int)
        and arguments[2] & WRITES
        and not _is_compiled(arguments[0])
    ):
        note(f"writes to {arguments[0]}")


def _is_compiled(file: object) -> bool:
    """Python keeps what it imports. Only the first import after a change writes."""
    return "__pycache__" in str(file)


def _watched(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def watched(self: Any, *arguments: Any, **more: Any) -> Any:
        note(f"calls {type(self).__name__}.{method.__name__}")
        return method(self, *arguments, **more)

    return watched


def _noted(sleep: Callable[[float], None]) -> Callable[[float], None]:
    def noted(seconds: float) -> None:
        note("sleeps")
        sleep(seconds)

    return noted


def note(what: str) -> None:
    """Of something slow that the caller of our caller does now; also for what stands for it in tests."""
    if getattr(_looking, "now", False):
        return
    _looking.now = True
    try:
        if _in_transaction() and (caller := _product_code(sys._getframe(2))):
            stack = "".join(traceback.format_stack(caller, FRAMES))
            _found.append(f"{what} inside a transaction:\n{stack}")
    finally:
        _looking.now = False


def _in_transaction() -> bool:
    """Within a block that is not the one that a test has around itself."""
    if not apps.ready:
        return False
    opened = connections.all(initialized_only=True)
    return any(
        not vars(block)["_from_testcase"] for connection in opened for block in connection.atomic_blocks
    )


def _product_code(frame: FrameType | None) -> FrameType | None:
    """The innermost frame of the repository, where it is no test's."""
    while frame is not None:
        path = Path(frame.f_code.co_filename)
        if path.is_relative_to(REPOSITORY) and "site-packages" not in path.parts:
            return None if path.is_relative_to(REPOSITORY / "tests") else frame
        frame = frame.f_back
    return None
