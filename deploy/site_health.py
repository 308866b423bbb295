"""What the running site says about itself at /healthz/."""

import json
import urllib.error
import urllib.request
from typing import Any

from deploy.config import Config

# Never through a proxy: the site is on this machine.
OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def ask(config: Config, timeout: float = 5.0) -> dict[str, Any] | None:
    """None where the site does not answer. An unhealthy site answers too (503), with the same document."""
    try:
        with OPENER.open(f"{config.local_url}/healthz/", timeout=timeout) as answer:
            return _document(answer.read())
    except urllib.error.HTTPError as error:
        with error:
            return _document(error.read())
    except OSError:
        return None


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
