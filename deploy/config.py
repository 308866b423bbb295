"""The environment of the `ma` script, read strictly and once."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from deploy.console import DeployError

REPOSITORY = Path(__file__).resolve().parent.parent

# Where the services of this machine listen and are reached; only the site itself may listen elsewhere
# (MA_HOST).
LOOPBACK = "127.0.0.1"

# What KMAs offer while the demo runs. Without it, and without KMA_AGENTS, they offer nothing: these agents do
# what a message or a parameter says, and whoever may edit a setting chooses both.
DEMO_AGENTS = "kma.samples.orders,kma.samples.scripted,kma.samples.standalone"
NO_AGENTS = "none"

# Settings of the site and the KMAs that `ma` hands on when the person who starts it has set them.
HANDED_ON = (
    "MA_ALLOWED_HOSTS",
    "MA_ALLOW_UNENCRYPTED",
    "MA_ARCHIVE_BODIES",
    "MA_ARCHIVE_URL",
    "MA_BACKUP_HOURS",
    "MA_BASE_URL",
    "MA_BIN_DAYS",
    "MA_DATABASE_URL",
    "MA_DATABASE_URL_FILE",
    "MA_DEADMAN_METHOD",
    "MA_DEADMAN_URL",
    "MA_DEADMAN_URL_FILE",
    "MA_DEBUG",
    "MA_DLA_ADDRESS",
    "MA_EMAIL_URL",
    "MA_EMAIL_URL_FILE",
    "MA_GIVEN_BACK_OFTEN",
    "MA_INTAKE_MB_PER_MINUTE",
    "MA_INTAKE_ROWS_PER_MINUTE",
    "MA_KEEP_ACTIVATIONS_DAYS",
    "MA_KEEP_ALERTS_DAYS",
    "MA_KEEP_AUDIT_DAYS",
    "MA_KEEP_ANSWERS_DAYS",
    "MA_KEEP_DEAD_LETTERS_DAYS",
    "MA_KEEP_DEAD_LETTER_BODIES_DAYS",
    "MA_KEEP_REFUSED_DAYS",
    "MA_KEEP_PIPELINE_RUNS_DAYS",
    "MA_KEEP_REPLAYS_DAYS",
    "MA_KEEP_RUNS_DAYS",
    "MA_LOG_LEVEL",
    "MA_LOST_AFTER_SECONDS",
    "MA_METRICS_ADDRESS",
    "MA_METRICS_TOKEN",
    "MA_METRICS_TOKEN_FILE",
    "MA_PIPELINE",
    "MA_PIPELINE_AT",
    "MA_PIPELINE_HOURS",
    "MA_PIPELINE_MASTER",
    "MA_PIPELINE_MEMORY_MB",
    "MA_PIPELINE_PROPERTIES",
    "MA_PIPELINE_SUBMIT",
    "MA_RETENTION_DAYS",
    "MA_RETENTION_KEEP_DEAD",
    "MA_RETENTION_SILENT_DAYS",
    "MA_SECOND_PERSON_ABOVE",
    "MA_SCHEMA_SIGNED_IN",
    "MA_TRACE_URL",
    "MA_TRUSTED_PROXIES",
    "KMA_AGENTS",
    "KMA_ALLOW_UNENCRYPTED",
    "KMA_CHILD_ENV",
    "KMA_HEARTBEAT_SECONDS",
    "KMA_KEEP_HOURS",
    "KMA_LOG_LEVEL",
    "KMA_METRICS_ADDRESS",
    "KMA_SAMPLES_ANYWHERE",
    "KMA_SPOOL_BYTES",
    "KMA_TRACE_ENDPOINT",
)

SERVER_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,60}")
HOST = re.compile(r"[A-Za-z0-9.-]+")


@dataclass(frozen=True)
class Config:
    data: Path
    host: str
    port: int
    amqp_port: int
    stomp_port: int
    core_port: int
    redis_port: int
    servers: tuple[str, ...]
    handed_on: Mapping[str, str]
    tls: bool = False

    @property
    def local_host(self) -> str:
        """Where a program on this machine reaches the site."""
        return LOOPBACK if self.host == "0.0.0.0" else self.host

    @property
    def local_url(self) -> str:
        return f"{'https' if self.tls else 'http'}://{self.local_host}:{self.port}"

    @property
    def amqp_url(self) -> str:
        return f"{'amqps' if self.tls else 'amqp'}://{LOOPBACK}:{self.amqp_port}"

    @property
    def stomp_address(self) -> str:
        return f"{'stomps://' if self.tls else ''}{LOOPBACK}:{self.stomp_port}"

    @property
    def address(self) -> str:
        """What a person opens."""
        return self.handed_on.get("MA_BASE_URL", self.local_url).rstrip("/") + "/"


def read(environ: Mapping[str, str]) -> Config:
    for name in ("MA_DATABASE_URL", "MA_EMAIL_URL", "MA_METRICS_TOKEN"):
        if environ.get(name) and environ.get(f"{name}_FILE"):
            raise DeployError(f"{name} and {name}_FILE are both set: keep one")
    ports = {
        name: _port(environ, name, default)
        for name, default in (
            ("MA_PORT", 8000),
            ("MA_AMQP_PORT", 5672),
            ("MA_STOMP_PORT", 61613),
            ("MA_CORE_PORT", 61616),
            ("MA_REDIS_PORT", 6379),
        )
    }
    _refuse_shared_ports(ports)
    _refuse_unknown_pipeline(environ.get("MA_PIPELINE") or "")
    return Config(
        data=_folder(environ.get("MA_DATA") or str(REPOSITORY / "var")),
        host=_host(environ.get("MA_HOST") or LOOPBACK),
        port=ports["MA_PORT"],
        amqp_port=ports["MA_AMQP_PORT"],
        stomp_port=ports["MA_STOMP_PORT"],
        core_port=ports["MA_CORE_PORT"],
        redis_port=ports["MA_REDIS_PORT"],
        servers=_servers(environ.get("MA_SERVERS") or "srv-1,srv-2"),
        handed_on={name: environ[name] for name in HANDED_ON if environ.get(name)},
        tls=_switch("MA_TLS", environ.get("MA_TLS") or "0"),
    )


def _port(environ: Mapping[str, str], name: str, default: int) -> int:
    text = environ.get(name) or str(default)
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= 65535):
        raise DeployError(f"{name}={text!r} is not a port: use a number from 1 to 65535")
    return int(text)


def _switch(name: str, text: str) -> bool:
    if text not in ("0", "1"):
        raise DeployError(f"{name}={text!r}: use 1 or 0")
    return text == "1"


def _refuse_shared_ports(ports: Mapping[str, int]) -> None:
    seen: dict[int, str] = {}
    for name, port in ports.items():
        if port in seen:
            raise DeployError(f"{seen[port]} and {name} are both {port}: choose different ports")
        seen[port] = name


def _refuse_unknown_pipeline(text: str) -> None:
    """The other codes of the site are said by `ma` itself, never by a person."""
    if text not in ("", "off"):
        raise DeployError(
            f"MA_PIPELINE={text!r}: use off, or unset it (then it is on if the machine is large enough)"
        )


def _folder(text: str) -> Path:
    if any(character in text for character in "\n\r\0"):
        raise DeployError(f"MA_DATA={text!r} is not a folder name")
    return Path(text).expanduser().absolute()


def _host(text: str) -> str:
    if not HOST.fullmatch(text):
        raise DeployError(f"MA_HOST={text!r} is neither an IPv4 address nor a host name")
    return text


def _servers(text: str) -> tuple[str, ...]:
    names = tuple(part.strip() for part in text.split(",") if part.strip())
    for name in names:
        if not SERVER_NAME.fullmatch(name):
            raise DeployError(
                f"MA_SERVERS: {name!r} is not a server name: use lower-case letters, digits and -, at most 61"
            )
    if not names or len(set(names)) < len(names):
        raise DeployError(f"MA_SERVERS={text!r} must name at least one server, each once")
    return names
