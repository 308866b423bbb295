"""A wire between two processes that can be cut and mended: `Wire(port)` listens on a port of its own.

Cut, it behaves as a broken network does: connections stay open and nothing arrives, on either side. Mended,
what was under way arrives late, and who has hung up meanwhile is heard to hang up.
"""

import socket
import threading
from contextlib import suppress

from deploy.config import LOOPBACK

_CHUNK = 1 << 16


class Wire:
    def __init__(self, target: int) -> None:
        self._target = target
        self._whole = threading.Event()
        self._whole.set()
        self._sockets: list[socket.socket] = []
        self._listener = socket.create_server((LOOPBACK, 0), backlog=64)
        self.port = int(self._listener.getsockname()[1])
        self._closed = False
        threading.Thread(target=self._accept, name=f"wire {self.port}", daemon=True).start()

    def cut(self) -> None:
        self._whole.clear()

    def mend(self) -> None:
        self._whole.set()

    def lead_to(self, target: int) -> None:
        """New connections end at another port."""
        self._target = target

    def close(self) -> None:
        self._closed = True
        self._whole.set()
        _hang_up(self._listener)
        self.drop()

    def drop(self) -> None:
        """Every connection ends, on both sides; new ones are taken."""
        while self._sockets:
            _hang_up(self._sockets.pop())

    def _accept(self) -> None:
        while not self._closed:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._join, args=(near,), daemon=True).start()

    def _join(self, near: socket.socket) -> None:
        self._sockets.append(near)
        self._whole.wait()
        try:
            far = socket.create_connection((LOOPBACK, self._target), timeout=10)
        except OSError:
            near.close()
            return
        far.settimeout(None)
        self._sockets.append(far)
        for one in (near, far):
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=self._pump, args=(near, far), daemon=True).start()
        self._pump(far, near)

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        """Until the source hangs up; then the sink is told, when the wire lets it through."""
        with suppress(OSError):
            while data := source.recv(_CHUNK):
                self._whole.wait()
                sink.sendall(data)
        self._whole.wait()
        with suppress(OSError):
            sink.shutdown(socket.SHUT_WR)


def _hang_up(one: socket.socket) -> None:
    # A thread that waits in accept or recv is woken by a shutdown, not by a close.
    with suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()
