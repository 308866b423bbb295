"""Who is told of trips, made for tests: a web server and a mail server on free ports, which keep what
came."""

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Hook:
    """`answers`: the status of the next answers; 200 when they are used up."""

    url: str = ""
    answers: list[int] = field(default_factory=list)
    heard: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)


@contextmanager
def listening_hook() -> Iterator[Hook]:
    hook = Hook()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            hook.heard.append((self.path, dict(self.headers), body))
            status = hook.answers.pop(0) if hook.answers else 200
            self.send_response(status)
            if 300 <= status < 400:
                self.send_header("Location", "/elsewhere/")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def do_GET(self) -> None:
            hook.heard.append((self.path, dict(self.headers), b""))
            self.send_response(hook.answers.pop(0) if hook.answers else 200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    hook.url = f"http://127.0.0.1:{server.server_address[1]}/told/"
    with _served(server):
        yield hook


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
