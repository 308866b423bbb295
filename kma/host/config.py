"""The environment of a KMA, read once, strictly. Every secret NAME may come as NAME_FILE, a file that holds
it."""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

from broker.port import Account
from contract import redis_url
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


def read_config(environment: Mapping[str, str] | None = None) -> Config:
    """Raises ConfigError with everything that is wrong at once."""
    reader = _Reader(os.environ if environment is None else environment)
    config = Config(
        ma_url=reader.url("MA_URL", ("http", "https")).rstrip("/"),
        server=reader.matching("KMA_SERVER", r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}", "a server name"),
        token=reader.secret("KMA_TOKEN"),
        agents=reader.modules("KMA_AGENTS"),
        data=Path(reader.text("KMA_DATA")),
        account=Account(
            reader.url("KMA_AMQP_URL", ("amqp",)),
            reader.text("KMA_BROKER_USER"),
            reader.secret("KMA_BROKER_PASSWORD"),
        ),
        redis_url=reader.redis_url("KMA_REDIS_URL"),
        heartbeat_seconds=reader.number("KMA_HEARTBEAT_SECONDS", "2", 0.1, 60),
        spool_bytes=int(reader.number("KMA_SPOOL_BYTES", "536870912", 1_000_000, 2**50)),
        keep_seconds=reader.number("KMA_KEEP_HOURS", "48", 0, 8760) * 3600,
        log_level=reader.one_of("KMA_LOG_LEVEL", "INFO", LEVELS),
        child_env=reader.child_env(),
        metrics_address=reader.option("KMA_METRICS_ADDRESS", parse_address, ""),
        metrics_token=reader.secret("KMA_METRICS_TOKEN", ""),
        trace_endpoint=reader.option("KMA_TRACE_ENDPOINT", _endpoint, "") or "",
    )
    reader.checked("KMA_METRICS_TOKEN", config.metrics_token, check_token)
    if config.metrics_address and not config.metrics_address.is_loopback and not config.metrics_token:
        reader.problems.append("KMA_METRICS_ADDRESS is reached by others, so KMA_METRICS_TOKEN is needed")
    if reader.problems:
        raise ConfigError(
            "The environment of this KMA is invalid:\n" + "\n".join(f"  {p}" for p in reader.problems)
        )
    return config


def _endpoint(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("must be http://host:port/v1/traces, or https://…")
    return text


class _Reader:
    """Collects problems instead of stopping at the first; what is wrong reads as empty meanwhile."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self.problems: list[str] = []

    def text(self, name: str, default: str = "") -> str:
        value = self._environment.get(name, "").strip() or default
        if not value:
            self._wrong(name, "is not set")
        return value

    def secret(self, name: str, default: str | None = None) -> str:
        path = self._environment.get(f"{name}_FILE", "").strip()
        if not path:
            return self.text(name) if default is None else self._environment.get(name, "").strip() or default
        if self._environment.get(name):
            self._wrong(name, f"and {name}_FILE are both set: keep one")
        try:
            value = Path(path).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            self._wrong(f"{name}_FILE", f"cannot be read: {error}")
            return ""
        if not value:
            self._wrong(f"{name}_FILE", f"names an empty file: {path}")
        return value

    def url(self, name: str, schemes: tuple[str, ...]) -> str:
        return self._checked_url(name, self.text(name), schemes)

    def redis_url(self, name: str) -> str:
        value = self.secret(name)
        try:
            if value:
                redis_url.parse(value)
        except ValueError as error:
            self._wrong(name, str(error))
        return value

    def matching(self, name: str, pattern: str, what: str) -> str:
        value = self.text(name)
        if value and not re.fullmatch(pattern, value):
            self._wrong(name, f"is not {what}: {value!r}")
        return value

    def modules(self, name: str) -> tuple[str, ...]:
        """Empty where it says `none`: a server that offers nothing is meant so, and not forgotten."""
        text = self.text(name)
        if text == NO_MODULE:
            return ()
        found = tuple(part.strip() for part in text.split(",") if part.strip())
        if self._environment.get(name, "").strip() and not found:
            self._wrong(name, "lists no modules")
        for module in found:
            if not all(part.isidentifier() for part in module.split(".")):
                self._wrong(name, f"lists {module!r}, which is not a module name")
        return found

    def child_env(self) -> tuple[str, ...]:
        try:
            return names_in(self._environment.get(EXTRA, ""))
        except ValueError as error:
            self._wrong(EXTRA, f"lists a forbidden name: {error}")
            return ()

    def option(self, name: str, parse: Callable[[str], T], default: str) -> T | None:
        """None where it is not set. `parse` raises ValueError with the reason."""
        text = self._environment.get(name, "").strip() or default
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

    def _checked_url(self, name: str, value: str, schemes: tuple[str, ...]) -> str:
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
        return value

    def _wrong(self, name: str, problem: str) -> None:
        self.problems.append(f"{name} {problem}")
