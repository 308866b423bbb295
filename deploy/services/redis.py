"""A Redis of our own: configured, run, known to answer. It keeps nothing: no state lives in it alone."""

import socket
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

from deploy import secret_files
from deploy.config import LOOPBACK


def write_config(folder: Path, url: str) -> Path:
    parts = urlsplit(url)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "redis.conf"
    secret_files.write(path, render(port=parts.port or 6379, password=parts.password or "", folder=folder))
    return path


def render(*, port: int, password: str, folder: Path) -> str:
    return "\n".join(
        (
            "# Written anew by every ./ma up.",
            f"bind {LOOPBACK}",
            f"port {port}",
            f"requirepass {password}",
            f'dir "{_quoted(str(folder))}"',
            "daemonize no",
            "appendonly no",
            'save ""',
            "maxmemory-policy noeviction",
            "",
        )
    )


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def run_redis(config: Path, log: Path) -> subprocess.Popen[bytes]:
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        return subprocess.Popen(
            ["redis-server", str(config)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def redis_answers(url: str, timeout: float = 2.0) -> bool:
    """Whether a Redis that knows this password is there."""
    parts = urlsplit(url)
    try:
        with socket.create_connection(
            (parts.hostname or LOOPBACK, parts.port or 6379), timeout
        ) as connection:
            connection.settimeout(timeout)
            connection.sendall(f"AUTH {parts.password}\r\nPING\r\n".encode())
            return _read_lines(connection, 2) == [b"+OK", b"+PONG"]
    except OSError:
        return False


def _read_lines(connection: socket.socket, count: int) -> list[bytes]:
    received = b""
    while received.count(b"\r\n") < count:
        chunk = connection.recv(256)
        if not chunk:
            break
        received += chunk
    return received.split(b"\r\n")[:count]
