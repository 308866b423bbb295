"""Whether ports are free before anything is started on them."""

import errno
import socket
from dataclasses import dataclass

from deploy.config import LOOPBACK, Config
from deploy.problem import Problem


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
        raise Problem("\n".join(problems))


def _problem(wanted: Wanted) -> str | None:
    try:
        _try_to_bind(wanted.host, wanted.port)
    except PermissionError:
        return f"Port {wanted.port} ({wanted.purpose}) needs root: choose one above 1023 with {wanted.variable}"
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            return f"Port {wanted.port} ({wanted.purpose}) is in use: end what uses it or set {wanted.variable}"
        return f"Cannot listen on {wanted.host}:{wanted.port} ({wanted.purpose}): {error.strerror or error}"
    return None


def _try_to_bind(host: str, port: int) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # Connections of the last run that linger in TIME_WAIT do not make a port busy.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((host, port))
        probe.listen(1)


def free_ports(count: int) -> list[int]:
    """Ports that were free a moment ago, for throw-away services."""
    probes = [socket.socket(socket.AF_INET, socket.SOCK_STREAM) for _ in range(count)]
    try:
        for probe in probes:
            probe.bind((LOOPBACK, 0))
        return [int(probe.getsockname()[1]) for probe in probes]
    finally:
        for probe in probes:
            probe.close()
