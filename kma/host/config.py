"""The environment of a KMA, read once, strictly. Every secret NAME may come as NAME_FILE, a file that holds
it."""

import os
import re
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar
from urllib.parse import unquote, urlsplit

from broker import dialing
from broker.port import Account
from contract import redis_url
from contract.encryption import SYSTEM, TlsFiles, clear_problem, parse_allowed, problems_of
from exposition.listener import Address, check_token, parse_address
from kma.children.process import EXTRA, names_in

T = TypeVar("T")
NO_MODULE = "none"
LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")


class ConfigError(ValueError):
    """The environment is wrong; the text says every reason. Operator: mend it and start again."""


@dataclass(frozen=True, slots=True)
class Config:
    """Durations in seconds. `data` is this server's own folder."""

    ma_url: str
    server: str
    token: str = field(repr=False)
    agents: tuple[str, ...]
    data: Path
    account: Account
    redis_url: str = field(repr=False)
    heartbeat_seconds: float
    spool_bytes: int
    keep_seconds: float
    log_level: str
    child_env: tuple[str, ...] = ()
    metrics_address: Address | None = None
    metrics_token: str = field(default="", repr=False)
    trace_endpoint: str = ""
    ma_tls: TlsFiles = SYSTEM


BROKER_FILES = TlsFiles("KMA_BROKER_TLS_CA", "KMA_BROKER_TLS_CERT", "KMA_BROKER_TLS_KEY")
MA_FILES = TlsFiles("KMA_MA_TLS_CA")
ALLOWED = "KMA_ALLOW_UNENCRYPTED"


def read_config(environment: Mapping[str, str] | None = None) -> Config:
    """Raises ConfigError with everything that is wrong at once."""
    reader = _Reader(os.environ if environment is None else environment)
    config = Config(
        ma_url=reader.url("MA_URL", ("http", "https"), clear=("http", "site")).rstrip("/"),
        server=reader.matching(
            "KMA_SERVER", r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}", "a server name", default=socket.gethostname()
        ),
        token=reader.secret("KMA_TOKEN"),
        agents=reader.modules("KMA_AGENTS"),
        data=Path(reader.text("KMA_DATA", str(default_data(reader.environment)))),
        account=_account(reader),
        redis_url=reader.redis_url("KMA_REDIS_URL", ""),
        heartbeat_seconds=reader.number("KMA_HEARTBEAT_SECONDS", "2", 0.1, 60),
        spool_bytes=int(reader.number("KMA_SPOOL_BYTES", "536870912", 1_000_000, 2**50)),
        keep_seconds=reader.number("KMA_KEEP_HOURS", "48", 0, 8760) * 3600,
        log_level=reader.one_of("KMA_LOG_LEVEL", "INFO", LEVELS),
        child_env=reader.child_env(),
        metrics_address=reader.option("KMA_METRICS_ADDRESS", parse_address, ""),
        metrics_token=reader.secret("KMA_METRICS_TOKEN", ""),
        trace_endpoint=reader.option("KMA_TRACE_ENDPOINT", _endpoint, "") or "",
        ma_tls=reader.tls(MA_FILES),
    )
    reader.checked("KMA_METRICS_TOKEN", config.metrics_token, check_token)
    if config.metrics_address and not config.metrics_address.is_loopback and not config.metrics_token:
        reader.problems.append("KMA_METRICS_ADDRESS is reached by others, so KMA_METRICS_TOKEN is needed")
    if reader.problems:
        raise ConfigError(
            "The environment of this KMA is invalid:\n" + "\n".join(f"  {p}" for p in reader.problems)
        )
    return config


def default_data(environment: Mapping[str, str]) -> Path:
    """Of a service what its manager made for it, else the folder of a person's programs."""
    if folder := environment.get("STATE_DIRECTORY", ""):
        return Path(folder.partition(":")[0])
    home = Path(environment.get("HOME", "/"))
    return Path(environment.get("XDG_STATE_HOME") or home / ".local" / "state") / "kma"


ACCOUNT = re.compile(r"(?<=://)(?P<user>[^:@/,]+):(?P<password>[^@/,]+)@")


def _account(reader: "_Reader") -> Account:
    """By a certificate where one is given and no user. User and password may stand in the address, too, which
    is a secret then."""
    files = reader.tls(BROKER_FILES)
    text = reader.secret("KMA_AMQP_URL")
    in_url = {(unquote(each["user"]), unquote(each["password"])) for each in ACCOUNT.finditer(text)}
    text = ACCOUNT.sub("", text)
    if in_url and (len(in_url) > 1 or reader.given("KMA_BROKER_USER")):
        reader.problems.append("KMA_AMQP_URL holds another account than KMA_BROKER_USER, or several of them")
    by_certificate = bool(files.certificate) and not in_url and not reader.given("KMA_BROKER_USER")
    addresses = reader.checked("KMA_AMQP_URL", text, _amqp) or ()
    if not any(address.secure for address in addresses):
        reader.refuse_clear("KMA_AMQP_URL", "broker", [address.host for address in addresses])
        if by_certificate:
            reader.problems.append("KMA_BROKER_TLS_CERT needs amqps:// in KMA_AMQP_URL")
    if in_url:
        user, password = next(iter(in_url))
    elif by_certificate:
        user, password = "", ""
    else:
        user, password = reader.text("KMA_BROKER_USER", "kma"), reader.secret("KMA_BROKER_PASSWORD")
    return Account(
        text,
        user,
        password,
        files,
        in_clear="broker" in reader.allowed,
    )


def _amqp(text: str) -> tuple[dialing.Address, ...]:
    return dialing.parse(text, "amqp")


def _endpoint(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("must be http://host:port/v1/traces, or https://…")
    return text


class _Reader:
    """Collects problems instead of stopping at the first; what is wrong reads as empty meanwhile."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.environment = environment
        self.problems: list[str] = []
        self.allowed = self.option(ALLOWED, parse_allowed, "") or frozenset()

    def given(self, name: str) -> bool:
        return bool(self.environment.get(name, "").strip())

    def tls(self, names: TlsFiles) -> TlsFiles:
        files = TlsFiles(*(name and self.environment.get(name, "").strip() for name in names))
        self.problems += problems_of(files, names)
        return files

    def refuse_clear(self, name: str, kind: str, hosts: Sequence[str]) -> None:
        if problem := clear_problem(kind, hosts, self.allowed, ALLOWED):
            self.problems.append(f"{name}: {problem}")

    def text(self, name: str, default: str = "") -> str:
        value = self.environment.get(name, "").strip() or default
        if not value:
            self._wrong(name, "is not set")
        return value

    def secret(self, name: str, default: str | None = None) -> str:
        path = self.environment.get(f"{name}_FILE", "").strip()
        if not path:
            return self.text(name) if default is None else self.environment.get(name, "").strip() or default
        if self.environment.get(name):
            self._wrong(name, f"and {name}_FILE are both set: keep one")
        try:
            value = Path(path).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            self._wrong(f"{name}_FILE", f"cannot be read: {error}")
            return ""
        if not value:
            self._wrong(f"{name}_FILE", f"names an empty file: {path}")
        return value

    def url(self, name: str, schemes: tuple[str, ...], *, clear: tuple[str, str]) -> str:
        """`clear`: the scheme that does not encrypt, and what has to be allowed then."""
        value = self.text(name)
        if self._is_url(name, value, schemes) and value.startswith(f"{clear[0]}://"):
            self.refuse_clear(name, clear[1], (urlsplit(value).hostname or "",))
        return value

    def redis_url(self, name: str, default: str) -> str:
        value = self.secret(name, default)
        try:
            if value and redis_url.parse(value).is_clear:
                self.refuse_clear(name, "redis", (urlsplit(value).hostname or "",))
        except ValueError as error:
            self._wrong(name, str(error))
        return value

    def matching(self, name: str, pattern: str, what: str, *, default: str) -> str:
        value = self.text(name, default)
        if value and not re.fullmatch(pattern, value):
            self._wrong(name, f"is not {what}: {value!r}")
        return value

    def modules(self, name: str) -> tuple[str, ...]:
        """Empty where it says `none`: a server that offers nothing is meant so, and not forgotten."""
        text = self.text(name, NO_MODULE)
        if text == NO_MODULE:
            return ()
        found = tuple(part.strip() for part in text.split(",") if part.strip())
        if self.environment.get(name, "").strip() and not found:
            self._wrong(name, "lists no modules")
        for module in found:
            if not all(part.isidentifier() for part in module.split(".")):
                self._wrong(name, f"lists {module!r}, which is not a module name")
        return found

    def child_env(self) -> tuple[str, ...]:
        try:
            return names_in(self.environment.get(EXTRA, ""))
        except ValueError as error:
            self._wrong(EXTRA, f"lists a forbidden name: {error}")
            return ()

    def option(self, name: str, parse: Callable[[str], T], default: str) -> T | None:
        """None where it is not set. `parse` raises ValueError with the reason."""
        text = self.environment.get(name, "").strip() or default
        return self.checked(name, text, parse)

    def checked(self, name: str, text: str, parse: Callable[[str], T]) -> T | None:
        try:
            return parse(text) if text else None
        except ValueError as error:
            self._wrong(name, str(error))
            return None

    def number(self, name: str, default: str, least: float, most: float) -> float:
        text = self.text(name, default)
        try:
            value = float(text)
        except ValueError:
            value = float("nan")
        if not least <= value <= most:
            self._wrong(name, f"must be a number from {least:g} to {most:g}, not {text!r}")
            return least
        return value

    def one_of(self, name: str, default: str, allowed: tuple[str, ...]) -> str:
        value = self.text(name, default).upper()
        if value not in allowed:
            self._wrong(name, f"must be one of {', '.join(allowed)}, not {value!r}")
        return value

    def _is_url(self, name: str, value: str, schemes: tuple[str, ...]) -> bool:
        try:
            parts = urlsplit(value)
            right = (
                parts.scheme in schemes
                and bool(parts.netloc or parts.path)
                and (parts.port is None or parts.port > 0)
            )
        except ValueError:
            right = False
        if value and not right:
            self._wrong(name, f"is not a {' or '.join(schemes)} URL: {value!r}")
        return right

    def _wrong(self, name: str, problem: str) -> None:
        self.problems.append(f"{name} {problem}")
