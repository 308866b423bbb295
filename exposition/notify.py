"""Tells a service manager how a process is (sd_notify(3)): a word to the socket that NOTIFY_SOCKET names.

`fed` is called where work was done, never by a timer: who hangs falls silent, and is started anew.
"""

import os
import socket
import time
from contextlib import suppress

EVERY = 1.0
_next = 0.0


def tell(state: str) -> None:
    """`READY=1`, `STOPPING=1`, `WATCHDOG=1`. Nothing where nobody listens."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if address[:1] not in ("/", "@"):
        return
    if address[0] == "@":  # of the abstract namespace
        address = f"\0{address[1:]}"
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as told:
        told.connect(address)
        told.sendall(state.encode())


def fed() -> None:
    """Work was done. At most once in a second somebody is told."""
    global _next
    if (now := time.monotonic()) >= _next:
        _next = now + EVERY
        tell("WATCHDOG=1")


def is_watched() -> bool:
    return bool(os.environ.get("NOTIFY_SOCKET"))


def patience() -> float:
    """Seconds after which a silent process is started anew; 0 = never."""
    text = os.environ.get("WATCHDOG_USEC", "")
    return int(text) / 1_000_000 if text.isdecimal() else 0.0
