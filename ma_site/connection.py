"""One client of the web process: what came from it, what it waits for, and until when."""

import socket
from collections.abc import Iterator
from enum import Enum
from typing import Any

from gunicorn.workers.gthread import TConn

from ma_site.outgoing import KB, MB, Outgoing

READ = 64 * KB


class Stage(Enum):
    IDLE = "idle"
    HEAD = "head"
    BODY = "body"
    IN_LINE = "in line"
    ANSWER = "answer"
    LINGER = "linger"


class Connection(TConn):
    """`length`: bytes of the body that are still to be read, or read, of the request whose head is known."""

    def __init__(self, cfg: Any, sock: socket.socket, client: Any, server: Any) -> None:
        super().__init__(cfg, sock, client, server)
        self.sock = Outgoing(sock)
        self.initialized = self.data_ready = True
        self.incoming = bytearray()
        self.searched = 0
        self.request: Any = None
        self.length = 0
        self.large = self.refused = self.keep = False
        self.thrown_away = 0
        self.stage = Stage.IDLE
        self.deadline = 0.0

    @property
    def address(self) -> str:
        return str(self.client[0]) if isinstance(self.client, tuple) and self.client else ""


def pieces(body: bytearray) -> Iterator[bytes]:
    """As large as gunicorn would have read them, without a copy of the rest each time."""
    view = memoryview(body)
    for begin in range(0, len(body), READ):
        yield bytes(view[begin : begin + READ])


# What a process of the web holds for its clients, and how long; docs/operations.md tells it in words.


HEAD_MOST = 64 * KB
HEAD_SECONDS = BODY_SECONDS = 10.0
# What is longer than a small body comes from a known sender, at this rate at least (bytes a second).
SLOWEST_SENDER = 256 * KB
LARGE_AT_ONCE = 4
IN_LINE_SECONDS = 60.0
# Kept of all bodies that are not whole yet.
BODIES_HELD = 128 * MB
ANSWER_SECONDS, SLOWEST_READER = 10.0, 32 * KB
# Kept of all answers whose threads are gone.
ANSWERS_HELD = 64 * MB
# A sender that is refused reads its answer only when it has sent: as much is thrown away.
LINGER_SECONDS, REFUSED_SECONDS, LINGER_MOST = 2.0, 10.0, 64 * MB
SWEEP_SECONDS = 0.25
TOO_SLOW = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
