"""Who is told of trips, made for tests: a web server and a mail server on free ports, which keep what
came."""

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

# It closes the connection without an answer; it sends a byte of a header now and then, without an end.
CLOSES, DRIPS = "closes", "drips"


@dataclass
class Hook:
    """`answers`: the next answers; 200 when they are used up. A status, one with the value of its
    `Retry-After`, or `CLOSES` or `DRIPS`."""

    url: str = ""
    answers: list[int | str | tuple[int, str]] = field(default_factory=list)
    heard: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)


@contextmanager
def listening_hook() -> Iterator[Hook]:
    hook, ended = Hook(), threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            hook.heard.append((self.path, dict(self.headers), body))
            answer = hook.answers.pop(0) if hook.answers else 200
            if answer == CLOSES:
                self.close_connection = True
                return
            if answer == DRIPS:
                self._drip()
                return
            status, wait = answer if isinstance(answer, tuple) else (int(answer), "")
            self.send_response(status)
            if wait:
                self.send_header("Retry-After", wait)
            if 300 <= status < 400:
                self.send_header("Location", "/elsewhere/")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def _drip(self) -> None:
            """Ends when the other side has gone."""
            self.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
            with suppress(OSError):
                while not ended.wait(0.05):
                    self.wfile.write(b"x")

        def do_GET(self) -> None:
            hook.heard.append((self.path, dict(self.headers), b""))
            answer = hook.answers.pop(0) if hook.answers else 200
            assert isinstance(answer, int)
            self.send_response(answer)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    hook.url = f"http://127.0.0.1:{server.server_address[1]}/told/"
    with _served(server):
        yield hook
        ended.set()


@dataclass
class Mailbox:
    port: int = 0
    letters: list[str] = field(default_factory=list)
    refuse: bool = False


@contextmanager
def listening_mailbox() -> Iterator[Mailbox]:
    """Speaks as much SMTP as smtplib needs."""
    box = Mailbox()

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self._say("220 test")
            while line := self.rfile.readline().decode().strip():
                word = line.split()[0].upper()
                if word == "DATA":
                    self._say("354 go on")
                    box.letters.append(self._letter())
                    self._say("250 taken")
                elif word == "QUIT":
                    self._say("221 bye")
                    return
                else:
                    self._say("550 no such box" if word == "RCPT" and box.refuse else "250 fine")

        def _letter(self) -> str:
            lines = []
            while (line := self.rfile.readline().decode()) != ".\r\n":
                lines.append(line)
            return "".join(lines)

        def _say(self, text: str) -> None:
            self.wfile.write(f"{text}\r\n".encode())

    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
    box.port = server.server_address[1]
    with _served(server):
        yield box


@contextmanager
def _served(server: socketserver.TCPServer) -> Iterator[None]:
    server.daemon_threads = True  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)
