"""When a process is ready: asked of the process itself, not only of its runner."""

import hashlib
import hmac
import json
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from deploy import certificates, secret_files
from deploy.config import Config
from deploy.console import DeployError
from deploy.environment import Process
from deploy.layout import Layout
from deploy.processes.runner import Runner
from deploy.services import artemis, redis

# -- what the running site says about itself at /healthz/ ----------------------------------------------------


def _opener(config: Config) -> urllib.request.OpenerDirector:
    """Never through a proxy: the site is on this machine."""
    handlers: list[urllib.request.BaseHandler] = [urllib.request.ProxyHandler({})]
    if (authority := _authority(config)) is not None:
        handlers.append(urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=authority)))
    return urllib.request.build_opener(*handlers)


def _authority(config: Config) -> Path | None:
    return certificates.files_of(Layout(config.data)).authority if config.tls else None


def ask_site(config: Config, timeout: float = 5.0) -> dict[str, Any] | None:
    """None where the site does not answer. An unhealthy site answers too (503), with the same document."""
    try:
        with _opener(config).open(_question(config), timeout=timeout) as answer:
            return _document(answer.read())
    except urllib.error.HTTPError as error:
        with error:
            return _document(error.read())
    except OSError:
        return None


def _question(config: Config) -> urllib.request.Request:
    """Whoever may read the key of the site is told of its servers too; see
    `ma_site.health.installation_token`."""
    question = urllib.request.Request(f"{config.local_url}/healthz/")
    try:
        key = (Layout(config.data).secrets / "django_key").read_text("utf-8").strip()
    except OSError:
        return question
    token = hmac.new(key.encode(), b"ma.health", hashlib.sha256).hexdigest()
    question.add_header("Authorization", f"Bearer {token}")
    return question


class Latest:
    """What the site said a moment ago: many who wait for it ask it once."""

    def __init__(self, config: Config, seconds: float = 1.0) -> None:
        self._config, self._seconds = config, seconds
        self._asked_at = -seconds
        self._document: dict[str, Any] | None = None

    def ask(self) -> dict[str, Any] | None:
        if time.monotonic() - self._asked_at >= self._seconds:
            self._document = ask_site(self._config)
            self._asked_at = time.monotonic()
        return self._document


def _document(body: bytes) -> dict[str, Any] | None:
    try:
        document = json.loads(body)
    except ValueError:
        return None
    return document if isinstance(document, dict) else None


def part(document: dict[str, Any] | None, name: str) -> object:
    """The site's word for one of its parts."""
    parts = (document or {}).get("parts")
    return parts.get(name) if isinstance(parts, dict) else None


def heard_within(document: dict[str, Any] | None, server: str, seconds: float) -> bool:
    """Whether a server's KMA has sent a heartbeat within the last `seconds`."""
    servers = (document or {}).get("servers")
    age = servers.get(server) if isinstance(servers, dict) else None
    return isinstance(age, int | float) and age <= seconds


# -- readiness -----------------------------------------------------------------------------------------------


Probe = Callable[[], bool]

# These leave a sign of life in the database each time round; the site tells how fresh it is.
SIGNED = ("beat", "feed")

LIMIT_SECONDS = 120.0
PAUSE_SECONDS = 0.2


def probe(
    process: Process, config: Config, layout: Layout, runner: Runner, health: Latest | None = None
) -> Probe:
    """`health`: shared by all who are waited for at the same time."""
    health = health or Latest(config)
    started = time.monotonic()
    if process.kind == "artemis":
        return lambda: artemis.artemis_answers(config.amqp_port, authority=_authority(config))
    if process.kind == "redis":
        url = secret_files.read_secret(layout.secrets / "redis_url")
        return lambda: redis.redis_answers(url)
    if process.kind == "web":
        return lambda: health.ask() is not None
    if process.server:
        # A heartbeat of the KMA's previous life does not count.
        return lambda: heard_within(health.ask(), process.server, time.monotonic() - started)
    if process.kind in SIGNED:
        return lambda: part(health.ask(), process.name) == "ok"
    return lambda: runner.state(process.name).running


def reached(process: Process, probe: Probe, runner: Runner, layout: Layout, *, waited: float) -> bool:
    """DeployError where it is not ready in time, or has ended for good."""
    state = runner.state(process.name)
    if state.running and probe():
        return True
    if state.state in ("FATAL", "STOPPED") or waited > LIMIT_SECONDS:
        why = f"{process.name} is not ready after {waited:.0f} s ({state.description or state.state.lower()})"
        raise DeployError(why + _last_lines(process, layout))
    return False


def _last_lines(process: Process, layout: Layout) -> str:
    log = layout.log(process.name)
    lines = log.read_text("utf-8", errors="replace").splitlines()[-5:] if log.exists() else []
    shown = "".join(f"\n  | {line}" for line in lines)
    return f"; last lines of the log (./ma logs {process.name}):{shown}" if lines else ""
