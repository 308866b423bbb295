"""What runs, a line of the Procfile per process, that of the KMA for one per server; and the environment
of each process: docs/reference/environment.md names every variable."""

import re
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from deploy import certificates, pipeline_default
from deploy.config import DEMO_AGENTS, NO_AGENTS, REPOSITORY, Config
from deploy.console import DeployError
from deploy.installing import artemis_download
from deploy.layout import Layout
from deploy.secret_files import BROKER_ACCOUNTS, FROM_SHELL, read_secret, shell_file, token_file

LINE = re.compile(r"(?P<name>[a-z][a-z0-9-]*):\s*(?P<command>\S.*)")
PER_SERVER = "kma"


@dataclass(frozen=True)
class Process:
    name: str
    command: str
    server: str = ""

    @property
    def kind(self) -> str:
        """The name of its line."""
        return PER_SERVER if self.server else self.name


def parse_procfile(text: str) -> tuple[Process, ...]:
    found: dict[str, Process] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = LINE.fullmatch(line.strip())
        if match is None or match["name"] in found:
            raise DeployError(f"Procfile, line {number}: not a unique `name: command`: {line!r}")
        found[match["name"]] = Process(match["name"], match["command"])
    return tuple(found.values())


def expand(processes: Sequence[Process], servers: Sequence[str]) -> tuple[Process, ...]:
    expanded: list[Process] = []
    for process in processes:
        if process.name == PER_SERVER:
            expanded += [Process(f"{PER_SERVER}-{server}", process.command, server) for server in servers]
        else:
            expanded.append(process)
    return tuple(expanded)


# Read from files alone: what a shell inherited must not stand beside them.
SECRET_NAMES = (
    "MA_SECRET_KEY",
    "MA_REDIS_URL",
    "MA_BROKER_PASSWORD",
    "MA_PUBLISHER_PASSWORD",
    "KMA_TOKEN",
    "KMA_BROKER_PASSWORD",
    "KMA_METRICS_TOKEN",
    "KMA_REDIS_URL",
)
# What a shell may hold besides, that no process inherits: each is told by name what it needs.
UNSET = (
    *(f"{name}{suffix}" for name in (*SECRET_NAMES, *FROM_SHELL) for suffix in ("", "_FILE")),
    "DJANGO_SUPERUSER_PASSWORD",
    "MA_BROKER_TLS_CA",
    "MA_BROKER_TLS_CERT",
    "MA_BROKER_TLS_KEY",
    "MA_TLS_CERT",
    "MA_TLS_KEY",
    "KMA_BROKER_TLS_CA",
    "KMA_BROKER_TLS_CERT",
    "KMA_BROKER_TLS_KEY",
    "KMA_MA_TLS_CA",
)


def of_process(process: Process, config: Config, layout: Layout, *, demo: bool = False) -> dict[str, str]:
    """`demo`: whether the demo runs, whose agents the KMAs offer then."""
    if process.server:
        return kma(process.server, config, layout, demo=demo)
    if process.kind in ("artemis", "redis"):
        return {"MA_DATA": str(layout.data)}
    if process.kind == "demo":
        return site(config, layout) | publisher(layout)
    return site(config, layout)


def site(config: Config, layout: Layout) -> dict[str, str]:
    """With secrets named by file, those of a person's shell too: `secret_files.keep_from_shell` makes the
    files."""
    values = _site(config, layout)
    for name in FROM_SHELL:
        if value := config.handed_on.get(name):
            values.pop(name, None)
            values[f"{name}_FILE"] = str(shell_file(layout, name, value))
        elif f"{name}_FILE" in config.handed_on:
            values.pop(name, None)
    return values


def database_url(config: Config, layout: Layout) -> str:
    """Raises DeployError where the file that names it cannot be read."""
    known = config.handed_on
    if path := known.get("MA_DATABASE_URL_FILE"):
        return read_secret(Path(path))
    return known.get("MA_DATABASE_URL") or _site(config, layout)["MA_DATABASE_URL"]


def _site(config: Config, layout: Layout) -> dict[str, str]:
    return {
        "MA_DATA": str(layout.data),
        "MA_HOST": config.host,
        "MA_PORT": str(config.port),
        "MA_DATABASE_URL": f"sqlite://{quote(str(layout.database))}",
        "MA_ALLOWED_HOSTS": ",".join(_allowed_hosts(config)),
        "MA_BASE_URL": config.local_url,
        "MA_SECRET_KEY_FILE": str(layout.secrets / "django_key"),
        "MA_METRICS_TOKEN_FILE": str(layout.secrets / "metrics_token"),
        "MA_REDIS_URL_FILE": str(layout.secrets / "redis_url"),
        "MA_AMQP_URL": config.amqp_url,
        "MA_STOMP_ADDRESS": config.stomp_address,
        "MA_BROKER_USER": "ma-ops",
        "MA_BROKER_PASSWORD_FILE": str(layout.secrets / BROKER_ACCOUNTS["ma-ops"]),
        "MA_PIPELINE_DRIVERS": ",".join(map(str, artemis_download.jars())),
        "DJANGO_SETTINGS_MODULE": "ma_site.settings",
        **pipeline_default.settings(config, layout),
        **_tls(
            config,
            MA_BROKER_TLS_CA=certificates.files_of(layout).authority,
            MA_TLS_CERT=certificates.files_of(layout).certificate,
            MA_TLS_KEY=certificates.files_of(layout).key,
        ),
        **_python(),
        **_handed_on(config, "MA_"),
    }


def publisher(layout: Layout) -> dict[str, str]:
    return {
        "MA_PUBLISHER_USER": "publisher",
        "MA_PUBLISHER_PASSWORD_FILE": str(layout.secrets / BROKER_ACCOUNTS["publisher"]),
    }


METRICS = "KMA_METRICS_ADDRESS"


def kma(server: str, config: Config, layout: Layout, *, demo: bool = False) -> dict[str, str]:
    return {
        "MA_URL": config.local_url,
        "KMA_SERVER": server,
        "KMA_TOKEN_FILE": str(token_file(layout, server)),
        "KMA_DATA": str(layout.kma(server)),
        "KMA_AGENTS": DEMO_AGENTS if demo else NO_AGENTS,
        "KMA_AMQP_URL": config.amqp_url,
        "KMA_BROKER_USER": "kma",
        "KMA_BROKER_PASSWORD_FILE": str(layout.secrets / BROKER_ACCOUNTS["kma"]),
        "KMA_REDIS_URL_FILE": str(layout.secrets / "redis_url"),
        **_tls(
            config,
            KMA_BROKER_TLS_CA=certificates.files_of(layout).authority,
            KMA_MA_TLS_CA=certificates.files_of(layout).authority,
        ),
        **_python(),
        **{name: value for name, value in _handed_on(config, "KMA_").items() if name != METRICS},
        **_metrics_of(server, config, layout),
    }


def _metrics_of(server: str, config: Config, layout: Layout) -> dict[str, str]:
    """The KMAs of this machine listen side by side, in the order of MA_SERVERS; one of no server there has no
    port and does not listen. Raises DeployError."""
    address = config.handed_on.get(METRICS)
    if address is None or server not in config.servers:
        return {}
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) <= 65536 - len(config.servers):
        raise DeployError(f"KMA_METRICS_ADDRESS={address!r} must be host:port, with a port for each server")
    return {
        METRICS: f"{host}:{int(port) + config.servers.index(server)}",
        "KMA_METRICS_TOKEN_FILE": str(layout.secrets / "metrics_token"),
    }


def _tls(config: Config, **files: Path) -> dict[str, str]:
    return {name: str(path) for name, path in files.items()} if config.tls else {}


def _python() -> dict[str, str]:
    """The virtual environment's programs come first; logs are written as they happen."""
    return {"VIRTUAL_ENV": str(REPOSITORY / ".venv"), "PYTHONUNBUFFERED": "1"}


def _allowed_hosts(config: Config) -> list[str]:
    hosts = ["127.0.0.1", "localhost", socket.gethostname()]
    if config.host not in (*hosts, "0.0.0.0"):
        hosts.append(config.host)
    return hosts


def _handed_on(config: Config, prefix: str) -> dict[str, str]:
    return {name: value for name, value in config.handed_on.items() if name.startswith(prefix)}
