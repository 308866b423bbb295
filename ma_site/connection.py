"""One client of the web process: what came from it, what it waits for, and until when."""

import socket
from collections.abc import Iterator
from enum import Enum
from typing import Any

from gunicorn.workers.gthread import TConn

from ma_site.outgoing import KB, Outgoing

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
