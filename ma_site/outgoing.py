"""What a connection still has to send, kept for a reader that does not take it at once."""

import errno
import selectors
import socket
import time
from collections import deque
from typing import Any

KB, MB = 1024, 1024 * 1024
# Kept of one answer: more than the largest static file. Past it a thread waits, `STEP` at a time.
ANSWER_HELD = 4 * MB
STEP, STEP_SECONDS = 256 * KB, 10.0
PIECE = 64 * KB


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
        return self._sock.recv(size)

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
            except (BlockingIOError, InterruptedError):
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
