"""An address that leads to a server, until it leads to another one or nowhere."""

import select
import socket
import threading
from contextlib import suppress

from deploy.config import LOOPBACK


class Forwarder:
    """`hang`: connections stay, nothing passes any more. `lead`: connections end, new ones go there; to no
    port: they are refused."""

    def __init__(self, port: int) -> None:
        self._target: int | None = port
        self._passing = threading.Event()
        self._passing.set()
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._lock = threading.Lock()
        self._listener = socket.create_server((LOOPBACK, 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def lead(self, port: int | None) -> None:
        self._target = port
        self._passing.set()
        with self._lock:
            pairs, self._pairs = self._pairs, []
        for pair in pairs:
            for end in pair:
                with suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

    def hang(self) -> None:
        self._passing.clear()

    def close(self) -> None:
        self._listener.close()
        self.lead(None)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _address = self._listener.accept()
                threading.Thread(target=self._serve, args=(near,), daemon=True).start()

    def _serve(self, near: socket.socket) -> None:
        self._passing.wait()
        with near, suppress(OSError):
            if self._target is None:
                return
            with socket.create_connection((LOOPBACK, self._target)) as far:
                with self._lock:
                    self._pairs.append((near, far))
                self._pass(near, far)

    def _pass(self, near: socket.socket, far: socket.socket) -> None:
        other = {near: far, far: near}
        while True:
            ready, _, _ = select.select(list(other), [], [])
            self._passing.wait()
            for end in ready:
                data = end.recv(65536)
                if not data:
                    return
                other[end].sendall(data)
