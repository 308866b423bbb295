"""Between an AMQP client and the real broker: it passes frame by frame, holds one back, or swallows some."""

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from urllib.parse import urlsplit

from proton import Data, Described

FLOW = 0x13
LINK_CREDIT, DRAIN = 6, 8


def flow_of(frame: bytes) -> list[object] | None:
    """The fields of a flow frame, or None of any other one."""
    if len(frame) < 11 or frame[5] != 0 or frame[8:11] != bytes((0x00, 0x53, FLOW)):
        return None
    data = Data()
    data.decode(frame[8:])
    data.rewind()
    data.next()
    described = data.get_object()
    assert isinstance(described, Described) and isinstance(described.value, list)
    return list(described.value)


def drains(frame: bytes) -> bool:
    fields = flow_of(frame)
    return fields is not None and len(fields) > DRAIN and fields[DRAIN] is True


class AmqpProxy:
    """`to_broker` and `to_client` see each frame before it goes on, and may wait; False swallows it."""

    def __init__(self, broker: str) -> None:
        address = urlsplit(broker)
        self._broker = (address.hostname or "127.0.0.1", address.port or 5672)
        self._server = socket.create_server(("127.0.0.1", 0))
        self.url = f"amqp://127.0.0.1:{self._server.getsockname()[1]}"
        self.to_broker: Callable[[bytes], bool] = lambda _frame: True
        self.to_client: Callable[[bytes], bool] = lambda _frame: True
        self.connections = 0
        self._sockets: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def close(self) -> None:
        for each in (self._server, *self._sockets):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        for thread in self._threads:
            thread.join(10)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._server.accept()
            except OSError:
                return
            self.connections += 1
            broker = socket.create_connection(self._broker)
            self._sockets += [client, broker]
            for source, target, look in (
                (client, broker, lambda frame: self.to_broker(frame)),
                (broker, client, lambda frame: self.to_client(frame)),
            ):
                thread = threading.Thread(target=_pass_on, args=(source, target, look), daemon=True)
                self._threads.append(thread)
                thread.start()


def _pass_on(source: socket.socket, target: socket.socket, look: Callable[[bytes], bool]) -> None:
    with suppress(OSError):
        while frame := _frame(source):
            if look(frame):
                target.sendall(frame)
    for each in (source, target):
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)


def _frame(source: socket.socket) -> bytes:
    """The next frame, or one of the two headers that a connection begins with; empty at the end."""
    head = _read(source, 8)
    if head[:4] == b"AMQP" or not head:
        return head
    return head + _read(source, int.from_bytes(head[:4], "big") - 8)


def _read(source: socket.socket, number: int) -> bytes:
    found = b""
    while len(found) < number:
        part = source.recv(number - len(found))
        if not part:
            return b""
        found += part
    return found
