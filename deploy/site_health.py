"""What the running site says about itself at /healthz/."""

import hashlib
import hmac
import json
import time
import urllib.error
import urllib.request
from typing import Any

from deploy.config import Config
from deploy.layout import Layout

# Never through a proxy: the site is on this machine.
OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def ask(config: Config, timeout: float = 5.0) -> dict[str, Any] | None:
    """None where the site does not answer. An unhealthy site answers too (503), with the same document."""
    try:
        with OPENER.open(_question(config), timeout=timeout) as answer:
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
            self._document = ask(self._config)
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
