"""A listener of its own for a process that serves nothing else: GET /metrics, for who may read it.

Bound to loopback it needs no token: nobody passes requests of others on to it. The name that the request
asks for must be one of this machine then, or a page in a browser here could read it under a name of its own
(DNS rebinding). Everywhere else a token is needed.
"""

import hmac
import ipaddress
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import BoundedSemaphore, Thread
from typing import Any
from urllib.parse import urlsplit

from exposition.declared import CONTENT_TYPE

SHORTEST_TOKEN = 16
# Of a request; who sends slower is left alone.
SECONDS = 5.0
AT_ONCE = 4


@dataclass(frozen=True, slots=True)
class Address:
    host: str
    port: int

    @property
    def is_loopback(self) -> bool:
        return _is_loopback(self.host)

    def moved(self, by: int) -> "Address":
        """The same host, some ports further."""
        return Address(self.host, self.port + by)


def parse_address(text: str, *, processes: int = 1) -> Address:
    """`host:port`, IPv6 in brackets. `processes`: so many ports from there on are used. Raises ValueError."""
    try:
        parts = urlsplit(f"//{text}")
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not host or not port or parts.path or parts.username is not None or port + processes - 1 > 65535:
        raise ValueError("must be host:port, for example 127.0.0.1:9464")
    return Address(host, port)


def check_token(token: str) -> str:
    """Raises ValueError."""
    if token and (
        len(token) < SHORTEST_TOKEN or not token.isascii() or not token.isprintable() or " " in token
    ):
        raise ValueError(f"needs at least {SHORTEST_TOKEN} characters, without spaces")
    return token


def has_token(authorization: str, token: str) -> bool:
    """Whether this header brings the token; never where there is none."""
    kind, _space, secret = authorization.partition(" ")
    given = kind.lower() == "bearer" and bool(token)
    return given and hmac.compare_digest(secret.strip().encode(), token.encode())


def may_read(authorization: str, host: str, token: str) -> bool:
    """Of a listener of its own. Without a token it listens on loopback alone."""
    if token:
        return has_token(authorization, token)
    try:
        asked = urlsplit(f"//{host}").hostname
    except ValueError:
        return False
    return asked is not None and _is_loopback(asked)


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Listener:
    """`text` answers each scrape, from a thread of its own. Raises OSError where the address is taken.
    `stop` it once."""

    def __init__(self, address: Address, token: str, text: Callable[[], bytes]) -> None:
        if not token and not address.is_loopback:
            raise ValueError("only a listener on loopback needs no token")
        self._server = _Server(address, token, text)
        self._thread = Thread(target=self._server.serve_forever, args=(0.2,), name="metrics", daemon=True)

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(2)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, address: Address, token: str, text: Callable[[], bytes]) -> None:
        self.address_family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
        self.token, self.text = token, text
        self.places = BoundedSemaphore(AT_ONCE)
        super().__init__((address.host, address.port), _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no news."""


class _Handler(BaseHTTPRequestHandler):
    timeout = SECONDS
    server: _Server

    def do_GET(self) -> None:
        if self.path.partition("?")[0] != "/metrics":
            self._answer(404, b"Only /metrics is here.\n")
        elif not may_read(
            self.headers.get("Authorization", ""), self.headers.get("Host", ""), self.server.token
        ):
            self._answer(401, b"A bearer token is needed.\n", {"WWW-Authenticate": "Bearer"})
        elif not self.server.places.acquire(blocking=False):
            self._answer(503, b"Too many scrapes at once.\n")
        else:
            try:
                found = self.server.text()
            finally:
                self.server.places.release()
            self._answer(200, found, {"Content-Type": CONTENT_TYPE})

    def _answer(self, status: int, content: bytes, headers: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": "text/plain; charset=utf-8", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def version_string(self) -> str:
        return "metrics"

    def log_message(self, format: str, *args: Any) -> None:
        """Every few seconds somebody asks."""
