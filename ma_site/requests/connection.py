"""One client of the web process: what came from it, what it waits for, and until when."""

import errno
import selectors
import socket
import ssl
import time
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from enum import Enum
from typing import Any

from gunicorn.workers.gthread import TConn

# -- what a connection still has to send, kept for a reader that does not take it at once --------------------


KB, MB = 1024, 1024 * 1024
# Kept of one answer: more than the largest static file. Past it a thread waits, `STEP` at a time.
ANSWER_HELD = 4 * MB
STEP, STEP_SECONDS = 256 * KB, 10.0
PIECE = 64 * KB


# What a socket with TLS says instead of BlockingIOError. Its first reads and writes shake hands.
NOT_NOW = (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


def tls_context(cfg: Any) -> ssl.SSLContext | None:
    """Of gunicorn's options; None without a certificate."""
    if not cfg.is_ssl:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(cfg.certfile, cfg.keyfile)
    return context


def secured(sock: socket.socket, context: ssl.SSLContext | None) -> socket.socket:
    """Does not wait for the client."""
    if context is None:
        return sock
    sock.setblocking(False)
    return context.wrap_socket(sock, server_side=True, do_handshake_on_connect=False)


class Outgoing:
    """A socket that does not block: what it does not take is kept, up to a bound, and sent later by
    `flush`."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._kept: deque[memoryview] = deque()
        self.held = 0

    def fileno(self) -> int:
        return self._sock.fileno()

    def recv(self, size: int) -> bytes:
        try:
            return self._sock.recv(size)
        except NOT_NOW as error:
            raise BlockingIOError from error

    def send(self, data: bytes) -> int:
        self.sendall(data)
        return len(data)

    def sendall(self, data: bytes) -> None:
        """Raises BrokenPipeError when the reader takes less than a step in its time."""
        self._kept.append(memoryview(data))
        self.held += len(data)
        self.flush()
        if self.held > ANSWER_HELD:
            self._wait_for_reader()

    def sendfile(self, file: Any, offset: int = 0, count: int | None = None) -> int:
        file.seek(offset)
        sent = 0
        while (count is None or sent < count) and (
            data := file.read(PIECE if count is None else min(PIECE, count - sent))
        ):
            self.sendall(data)
            sent += len(data)
        return sent

    def flush(self) -> None:
        """Sends what the socket takes now. Raises OSError."""
        while self._kept:
            piece = self._kept[0]
            try:
                sent = self._sock.send(piece)
            except NOT_NOW:
                return
            self.held -= sent
            if sent == len(piece):
                self._kept.popleft()
            else:
                self._kept[0] = piece[sent:]

    def _wait_for_reader(self) -> None:
        until = time.monotonic() + STEP_SECONDS
        with selectors.DefaultSelector() as selector:
            selector.register(self._sock, selectors.EVENT_WRITE)
            while self.held > ANSWER_HELD - STEP:
                left = until - time.monotonic()
                if left <= 0 or not selector.select(left):
                    raise BrokenPipeError(errno.EPIPE, "the reader is too slow")
                self.flush()

    def shutdown(self, how: int) -> None:
        if isinstance(self._sock, ssl.SSLSocket):
            with suppress(OSError, ValueError):  # the client's own goodbye is not waited for
                self._sock.unwrap()
        self._sock.shutdown(how)

    def close(self) -> None:
        self._kept.clear()
        self.held = 0
        self._sock.close()

    def getsockname(self) -> Any:
        return self._sock.getsockname()

    def gettimeout(self) -> float:
        return 0.0

    def settimeout(self, value: float | None) -> None:
        """It never blocks, whatever gunicorn wishes."""

    def setblocking(self, flag: bool) -> None:
        """It never blocks, whatever gunicorn wishes."""


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
    """Yields them as large as gunicorn would have read them, without a copy of the rest each time."""
    view = memoryview(body)
    for begin in range(0, len(body), READ):
        yield bytes(view[begin : begin + READ])


# -- requests that a web process holds, and how long (docs/reference/requests.md) ----------------------------


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
# Of a client that speaks TLS where the site does not: told at once, or it waits for the time of a head.
TLS_HELLO = b"\x16"
IN_CLEAR = b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
