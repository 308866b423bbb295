"""The environment of the MA's processes, read once and strictly. A secret NAME may also come as a file,
NAME_FILE."""

import ipaddress
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import time
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

from broker import dialing
from console.client_address import Network
from contract import redis_url
from contract.encryption import TlsFiles, clear_problem, parse_allowed, problems_of
from exposition.listener import Address, check_token, parse_address
from ma_site.service_urls import MAY_BE_CLEAR, Email, parse_database, parse_email

T = TypeVar("T")
# What `./ma` says of an archive that nobody named: it is the default one, or why there is none.
PIPELINE = ("off", "default", "little-memory", "little-disk")
LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")


@dataclass(frozen=True, slots=True)
class Monitoring:
    """Who reads /metrics, where processes without pages listen for that, and where traces are looked at."""

    token: str = field(repr=False)
    address: Address | None
    trace_url: str


@dataclass(frozen=True, slots=True)
class Environment:
    """Holds what the MA is told from outside. Secrets are never part of the repr."""

    secret_key: str = field(repr=False)
    database: dict[str, Any] = field(repr=False)
    redis_url: str = field(repr=False)
    amqp_url: str
    stomp_address: str
    broker_user: str
    broker_password: str = field(repr=False)
    broker_tls: TlsFiles
    unencrypted: frozenset[str]
    tls_certificate: str
    allowed_hosts: tuple[str, ...]
    base_url: str
    data: Path
    debug: bool
    lost_after_seconds: float
    log_level: str
    dla_address: str
    trusted_proxies: tuple[Network, ...]
    schema_signed_in: bool
    email: Email | None
    deadman_url: str = field(repr=False)
    deadman_method: str
    second_person_above: int
    given_back_often: int
    bin_days: int
    retention_days: int
    retention_silent_days: int
    backup_hours: int
    intake_rows_per_minute: int
    intake_mb_per_minute: int
    retention_keep_dead: bool
    keep_activations_days: int
    keep_runs_days: int
    keep_audit_days: int
    keep_replays_days: int
    keep_alerts_days: int
    keep_refused_days: int
    keep_answers_days: int
    keep_dead_letters_days: int
    keep_dead_letter_bodies_days: int
    pipeline: str
    archive_url: str
    archive_bodies: bool
    pipeline_drivers: tuple[str, ...]
    pipeline_master: str
    pipeline_submit: str
    pipeline_properties: str
    pipeline_memory_mb: int
    pipeline_hours: int
    pipeline_at: time | None
    keep_pipeline_runs_days: int
    monitoring: Monitoring


BROKER_FILES = TlsFiles("MA_BROKER_TLS_CA", "MA_BROKER_TLS_CERT", "MA_BROKER_TLS_KEY")
SITE_FILES = TlsFiles("", "MA_TLS_CERT", "MA_TLS_KEY")
ALLOWED = "MA_ALLOW_UNENCRYPTED"


class _Reader:
    """Collects every problem, so that one start shows all of them."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.environ = environ
        self.problems: list[str] = []
        self.allowed = self.option(ALLOWED, parse_allowed, "")
        self.broker_tls = TlsFiles(*(self.text(name, "") for name in BROKER_FILES))
        self.problems += problems_of(self.broker_tls, BROKER_FILES)
        # Of gunicorn, which starts before this is read.
        self.tls_certificate = self.text(SITE_FILES.certificate, "")
        self.problems += problems_of(
            TlsFiles("", self.tls_certificate, self.text(SITE_FILES.key, "")), SITE_FILES
        )
        # Who asks is said by the certificate where no user is named.
        self.by_certificate = bool(self.broker_tls.certificate) and not self.text("MA_BROKER_USER", "")

    def refuse_clear(self, name: str, kind: str, host: str) -> None:
        if problem := clear_problem(kind, (host,), self.allowed, ALLOWED):
            self.problems.append(f"{name}: {problem}")

    def text(self, name: str, default: str | None = None) -> str:
        value = self.environ.get(name, "").strip() or default
        if value is None:
            self.problems.append(f"{name} is not set")
            return ""
        return value

    def secret(self, name: str, default: str | None = None) -> str:
        path = self.environ.get(f"{name}_FILE", "")
        if not path:
            return self.text(name, default)
        try:
            value = Path(path).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            self.problems.append(f"{name}_FILE cannot be read: {error}")
            return ""
        if (given := self.environ.get(name, "").strip()) and given != value:
            # The same in both is no doubt: `./ma env` names the file to a shell that has the variable.
            self.problems.append(f"{name} and {name}_FILE are both set, and differ: keep one")
        if not value:
            self.problems.append(f"{name}_FILE names an empty file: {path}")
        return value

    def option(self, name: str, parse: Callable[[str], T], default: str) -> T:
        """Returns what may be left out."""
        return self.parsed(name, self.text(name, default), parse, parse(default))

    def parsed(self, name: str, text: str, parse: Callable[[str], T], fallback: T) -> T:
        """`parse` raises ValueError with the reason. What is missing was already reported."""
        if not text:
            return fallback
        try:
            return parse(text)
        except ValueError as error:
            self.problems.append(f"{name}: {error}")
            return fallback


def read(environ: Mapping[str, str]) -> Environment:
    """The environment, or ImproperlyConfigured with everything that is wrong with it."""
    reader = _Reader(environ)
    result = Environment(
        secret_key=reader.parsed("MA_SECRET_KEY", reader.secret("MA_SECRET_KEY"), _secret_key, ""),
        database=reader.parsed("MA_DATABASE_URL", reader.secret("MA_DATABASE_URL"), parse_database, {}),
        redis_url=reader.parsed("MA_REDIS_URL", reader.secret("MA_REDIS_URL"), _redis_url, ""),
        amqp_url=reader.parsed("MA_AMQP_URL", reader.text("MA_AMQP_URL"), _addresses("amqp"), ""),
        stomp_address=reader.parsed(
            "MA_STOMP_ADDRESS", reader.text("MA_STOMP_ADDRESS"), _addresses("stomp"), ""
        ),
        broker_user="" if reader.by_certificate else reader.text("MA_BROKER_USER"),
        broker_password="" if reader.by_certificate else reader.secret("MA_BROKER_PASSWORD"),
        broker_tls=reader.broker_tls,
        unencrypted=reader.allowed,
        tls_certificate=reader.tls_certificate,
        allowed_hosts=_listed(reader.text("MA_ALLOWED_HOSTS")),
        base_url=reader.parsed("MA_BASE_URL", reader.text("MA_BASE_URL"), _http_url, ""),
        data=Path(reader.text("MA_DATA")).absolute(),
        debug=reader.option("MA_DEBUG", _switch, "0"),
        lost_after_seconds=reader.option("MA_LOST_AFTER_SECONDS", _seconds, "15"),
        log_level=reader.option("MA_LOG_LEVEL", _log_level, "INFO"),
        dla_address=reader.text("MA_DLA_ADDRESS", "MA.DLA"),
        email=reader.parsed("MA_EMAIL_URL", reader.secret("MA_EMAIL_URL", ""), parse_email, None),
        deadman_url=reader.parsed("MA_DEADMAN_URL", reader.secret("MA_DEADMAN_URL", ""), _http_address, ""),
        deadman_method=reader.option("MA_DEADMAN_METHOD", _method, "GET"),
        trusted_proxies=reader.parsed(
            "MA_TRUSTED_PROXIES", reader.text("MA_TRUSTED_PROXIES", ""), _networks, ()
        ),
        schema_signed_in=reader.option("MA_SCHEMA_SIGNED_IN", _switch, "0"),
        second_person_above=reader.option("MA_SECOND_PERSON_ABOVE", _whole(0, 2_000_000_000), "0"),
        given_back_often=reader.option("MA_GIVEN_BACK_OFTEN", _whole(1, 1_000_000), "5"),
        bin_days=reader.option("MA_BIN_DAYS", _whole(1, 36_500), "30"),
        retention_days=reader.option("MA_RETENTION_DAYS", _whole(0, 36_500), "30"),
        backup_hours=reader.option("MA_BACKUP_HOURS", _whole(0, 87_600), "0"),
        retention_silent_days=reader.option("MA_RETENTION_SILENT_DAYS", _whole(0, 36_500), "90"),
        intake_rows_per_minute=reader.option("MA_INTAKE_ROWS_PER_MINUTE", _whole(1, 2_000_000_000), "600000"),
        intake_mb_per_minute=reader.option("MA_INTAKE_MB_PER_MINUTE", _whole(1, 1_000_000_000), "6000"),
        keep_activations_days=reader.option("MA_KEEP_ACTIVATIONS_DAYS", _whole(0, 36_500), "365"),
        keep_runs_days=reader.option("MA_KEEP_RUNS_DAYS", _whole(0, 36_500), "180"),
        keep_audit_days=reader.option("MA_KEEP_AUDIT_DAYS", _whole(0, 36_500), "0"),
        keep_replays_days=reader.option("MA_KEEP_REPLAYS_DAYS", _whole(0, 36_500), "365"),
        keep_alerts_days=reader.option("MA_KEEP_ALERTS_DAYS", _whole(0, 36_500), "365"),
        keep_answers_days=reader.option("MA_KEEP_ANSWERS_DAYS", _whole(0, 36_500), "30"),
        keep_dead_letters_days=reader.option("MA_KEEP_DEAD_LETTERS_DAYS", _whole(0, 36_500), "180"),
        keep_dead_letter_bodies_days=reader.option(
            "MA_KEEP_DEAD_LETTER_BODIES_DAYS", _whole(0, 36_500), "30"
        ),
        keep_refused_days=reader.option("MA_KEEP_REFUSED_DAYS", _whole(0, 36_500), "180"),
        pipeline=reader.parsed("MA_PIPELINE", reader.text("MA_PIPELINE", ""), _pipeline, ""),
        archive_url=reader.parsed("MA_ARCHIVE_URL", reader.text("MA_ARCHIVE_URL", ""), _location, ""),
        archive_bodies=reader.option("MA_ARCHIVE_BODIES", _switch, "0"),
        pipeline_drivers=_listed(reader.text("MA_PIPELINE_DRIVERS", "")),
        pipeline_master=reader.option("MA_PIPELINE_MASTER", _spark_master, "local[*]"),
        pipeline_submit=reader.text("MA_PIPELINE_SUBMIT", ""),
        pipeline_properties=reader.text("MA_PIPELINE_PROPERTIES", ""),
        pipeline_memory_mb=reader.option("MA_PIPELINE_MEMORY_MB", _whole(1024, 10_000_000), "4096"),
        pipeline_hours=reader.option("MA_PIPELINE_HOURS", _whole(1, 1000), "4"),
        pipeline_at=reader.option("MA_PIPELINE_AT", _time_of_day, "02:30"),
        keep_pipeline_runs_days=reader.option("MA_KEEP_PIPELINE_RUNS_DAYS", _whole(1, 36_500), "90"),
        retention_keep_dead=reader.option("MA_RETENTION_KEEP_DEAD", _switch, "0"),
        monitoring=_monitoring(reader),
    )
    _refuse_clear(reader, result)
    _refuse(reader.problems)
    return result


def _refuse_clear(reader: _Reader, read: Environment) -> None:
    """What would leave this machine in clear without having been allowed."""
    if reader.tls_certificate and read.base_url.startswith("http://"):
        reader.problems.append("MA_BASE_URL: must begin with https://, because MA_TLS_CERT is set")
    broker = [
        (name, address)
        for name, text, protocol in (
            ("MA_AMQP_URL", read.amqp_url, "amqp"),
            ("MA_STOMP_ADDRESS", read.stomp_address, "stomp"),
        )
        for address in (dialing.parse(text, protocol) if text else ())
    ]
    for name, address in broker:
        if not address.secure:
            reader.refuse_clear(name, "broker", address.host)
    if reader.by_certificate and not all(address.secure for _, address in broker):
        reader.problems.append("MA_BROKER_TLS_CERT needs TLS in MA_AMQP_URL and MA_STOMP_ADDRESS")
    if read.redis_url and redis_url.parse(read.redis_url).is_clear:
        reader.refuse_clear("MA_REDIS_URL", "redis", urlsplit(read.redis_url).hostname or "")
    if read.database.get("OPTIONS", {}).get("sslmode") in MAY_BE_CLEAR:
        for host in read.database["HOST"].split(","):
            reader.refuse_clear("MA_DATABASE_URL", "database", host)


def _monitoring(reader: _Reader) -> Monitoring:
    token = reader.parsed("MA_METRICS_TOKEN", reader.secret("MA_METRICS_TOKEN", ""), check_token, "")
    address = reader.parsed("MA_METRICS_ADDRESS", reader.text("MA_METRICS_ADDRESS", ""), _two_ports, None)
    if address is not None and not address.is_loopback and not token:
        reader.problems.append("MA_METRICS_ADDRESS: others reach it, so MA_METRICS_TOKEN is needed")
    trace_url = reader.parsed("MA_TRACE_URL", reader.text("MA_TRACE_URL", ""), _trace_url, "")
    return Monitoring(token, address, trace_url)


def _listed(text: str) -> tuple[str, ...]:
    return tuple(each.strip() for each in text.split(",") if each.strip())


def _pipeline(text: str) -> str:
    if text not in PIPELINE:
        raise ValueError(f"must be one of {', '.join(PIPELINE)}, not {text!r}")
    return text


@dataclass(frozen=True, slots=True)
class PublisherEnvironment:
    """Holds what only the demo publisher is told."""

    stomp_address: str
    user: str
    password: str = field(repr=False)
    tls: TlsFiles
    in_clear: bool


def read_publisher(environ: Mapping[str, str]) -> PublisherEnvironment:
    """Raises ImproperlyConfigured, as `read` does."""
    reader = _Reader(environ)
    result = PublisherEnvironment(
        stomp_address=reader.parsed(
            "MA_STOMP_ADDRESS", reader.text("MA_STOMP_ADDRESS"), _addresses("stomp"), ""
        ),
        user=reader.text("MA_PUBLISHER_USER"),
        password=reader.secret("MA_PUBLISHER_PASSWORD"),
        tls=reader.broker_tls,
        in_clear="broker" in reader.allowed,
    )
    _refuse(reader.problems)
    return result


def _refuse(problems: list[str]) -> None:
    if problems:
        listed = "\n  ".join(problems)
        raise ImproperlyConfigured(
            f"The environment of the MA is invalid:\n  {listed}\n"
            "`./ma` sets it. To set it manually, see docs/reference/environment.md."
        )


def _secret_key(text: str) -> str:
    if len(text) < 32:
        raise ValueError("needs at least 32 characters")
    return text


def _redis_url(text: str) -> str:
    redis_url.parse(text)
    return text


def _addresses(protocol: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text:
            dialing.parse(text, protocol)
        return text

    return parse


def _location(text: str) -> str:
    """A folder of this machine, or a URL that Hadoop's file systems know."""
    if not text.startswith("/") and not re.match("[a-z][a-z0-9]*://?[^/]*/", text):
        raise ValueError(
            "must be an absolute folder or a URL: /var/ma/archive, s3a://bucket/archive, hdfs://host/archive"
        )
    if urlsplit(text).password or urlsplit(text).username:
        raise ValueError("must not contain an account: URLs are logged")
    return text.rstrip("/")


def _http_url(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("must be http://host[:port] or https://host[:port]")
    return text.rstrip("/")


def _two_ports(text: str) -> Address:
    """Of `feed`; the worker takes the next one."""
    return parse_address(text, processes=2)


def _trace_url(text: str) -> str:
    """An address with a place for the id of a trace, for a link on pages."""
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname or "{trace_id}" not in text:
        raise ValueError("must be http://… or https://… with {trace_id} in it")
    return text


def _http_address(text: str) -> str:
    """As it is given: a path may end with a slash. It is not quoted, for it is a secret."""
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("must be an address that begins with http:// or https://")
    return text


def _method(text: str) -> str:
    if text.upper() not in ("GET", "POST"):
        raise ValueError("must be GET or POST")
    return text.upper()


def _networks(text: str) -> tuple[Network, ...]:
    return tuple(ipaddress.ip_network(each) for each in _listed(text))


def _switch(text: str) -> bool:
    if text not in ("0", "1"):
        raise ValueError("must be 0 or 1")
    return text == "1"


def _seconds(text: str) -> float:
    value = float(text)
    if not 1 <= value <= 3600:
        raise ValueError("must be between 1 and 3600 seconds")
    return value


def _whole(least: int, most: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        value = int(text) if text.isascii() and text.isdecimal() else -1
        if not least <= value <= most:
            raise ValueError(f"must be a whole number from {least} to {most}")
        return value

    return parse


def _spark_master(text: str) -> str:
    if not re.fullmatch(r"local(\[(\*|\d+)(,\d+)?\])?|yarn|(spark|k8s)://\S+", text):
        raise ValueError("must be local[N], local[*], spark://host:port, yarn or k8s://…")
    return text


def _time_of_day(text: str) -> time | None:
    """Returns None for `never`."""
    if text == "never":
        return None
    if not re.fullmatch(r"([01]\d|2[0-3]):[0-5]\d", text):
        raise ValueError("must be HH:MM (in UTC) or never")
    return time.fromisoformat(text)


def _log_level(text: str) -> str:
    if text not in LOG_LEVELS:
        raise ValueError(f"must be one of {', '.join(LOG_LEVELS)}")
    return text
