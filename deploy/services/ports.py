"""Whether ports are free before anything is started on them."""

import errno
import fcntl
import itertools
import os
import socket
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from deploy.config import LOOPBACK, Config
from deploy.console import DeployError

# Of throw-away services: each process that asks keeps a block for itself.
FIRST_PORT, BLOCK = 10_000, 100


@dataclass(frozen=True)
class Wanted:
    host: str
    port: int
    variable: str
    purpose: str


def wanted_by(config: Config) -> tuple[Wanted, ...]:
    return (
        Wanted(config.host, config.port, "MA_PORT", "the site"),
        Wanted(LOOPBACK, config.amqp_port, "MA_AMQP_PORT", "the broker, AMQP"),
        Wanted(LOOPBACK, config.stomp_port, "MA_STOMP_PORT", "the broker, STOMP"),
        Wanted(LOOPBACK, config.core_port, "MA_CORE_PORT", "the broker, JMS clients"),
        Wanted(LOOPBACK, config.redis_port, "MA_REDIS_PORT", "Redis"),
    )


def refuse_taken(wanted: tuple[Wanted, ...]) -> None:
    problems = [problem for each in wanted if (problem := _problem(each))]
    if problems:
        raise DeployError("\n".join(problems))


def _problem(wanted: Wanted) -> str | None:
    try:
        _try_to_bind(wanted.host, wanted.port)
    except PermissionError:
        return (
            f"Port {wanted.port} ({wanted.purpose}) needs root: choose one above 1023 with {wanted.variable}"
        )
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            return (
                f"Port {wanted.port} ({wanted.purpose}) is in use: stop the process that uses it, or set "
                f"{wanted.variable}"
            )
        return f"Cannot listen on {wanted.host}:{wanted.port} ({wanted.purpose}): {error.strerror or error}"
    return None


def _try_to_bind(host: str, port: int) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # Connections of the last run that linger in TIME_WAIT do not make a port busy.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((host, port))
        probe.listen(1)


def free_ports(count: int) -> list[int]:
    """Ports for throw-away services: nothing listens there, and no other process that asks here gets one of
    them."""
    found: list[int] = []
    while len(found) < count:
        port = next(_ours())
        if _problem(Wanted(LOOPBACK, port, "", "")) is None:
            found.append(port)
    return found


@cache
def _ours() -> Iterator[int]:
    """The ports of this process, round and round. A lock that ends with the process keeps other processes
    from them.

    All lie below those that the kernel gives to outgoing connections: none is taken between the question and
    its use.
    """
    for first in range(FIRST_PORT, _first_of_the_kernel() - BLOCK, BLOCK):
        lock = os.open(
            Path(tempfile.gettempdir()) / f"ma-ports-{os.getuid()}-{first}", os.O_CREAT | os.O_RDWR, 0o600
        )
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            continue
        return itertools.cycle(range(first, first + BLOCK))
    raise DeployError(f"All ports from {FIRST_PORT} on are reserved by other tests: stop some of them")


def _first_of_the_kernel() -> int:
    try:
        return int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    except (OSError, ValueError):
        return 32768
