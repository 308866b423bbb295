"""The address of Redis with its TLS, read once for every client: both Celery applications, health and doctor.

`rediss://` always verifies: a certificate of a known authority, issued for the host of the URL. There is no
parameter that switches this off. kombu alone would verify nothing, and so hand the password to whoever
answers.
"""

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlsplit, urlunsplit

from contract.encryption import file_problem

# Parameters of a `rediss://` URL, named as redis-py names them. Each is a file in PEM format.
FILES = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")


@dataclass(frozen=True, slots=True)
class RedisAddress:
    """`url` without parameters, `tls` as keywords of a redis-py connection; empty: in clear."""

    url: str = field(repr=False)
    tls: Mapping[str, Any]

    @property
    def is_clear(self) -> bool:
        """Over a network, without TLS."""
        return self.url.startswith("redis://")


def parse(text: str) -> RedisAddress:
    """Raises ValueError with the reason, which never quotes the URL: it holds a password."""
    try:
        parts = urlsplit(text)
        port_is_wrong = parts.port == 0
    except ValueError:
        raise ValueError("is not a redis, rediss or unix URL") from None
    if parts.scheme == "unix":
        return RedisAddress(text, {})
    if parts.scheme not in ("redis", "rediss") or not parts.hostname or port_is_wrong:
        raise ValueError("is not a redis, rediss or unix URL: redis://:password@host:port/0")
    bare = urlunsplit(parts._replace(query="", fragment=""))
    given = parse_qsl(parts.query, keep_blank_values=True)
    if parts.scheme == "redis":
        if given:
            raise ValueError(f"takes no parameters ({_names(given)}): for TLS use rediss://")
        return RedisAddress(bare, {})
    if unknown := [(name, value) for name, value in given if name not in FILES]:
        raise ValueError(f"has unknown parameters: {_names(unknown)}; known: {', '.join(FILES)}")
    files = dict(given)
    if len(files) < len(given):
        raise ValueError("has a duplicate parameter")
    for name, path in files.items():
        check_file(name, path)
    if "ssl_keyfile" in files and "ssl_certfile" not in files:
        raise ValueError("has ssl_keyfile without ssl_certfile")
    return RedisAddress(bare, {"ssl_cert_reqs": ssl.CERT_REQUIRED, "ssl_check_hostname": True, **files})


def check_file(name: str, path: str) -> None:
    """Raises ValueError where the file cannot be used."""
    if problem := file_problem(path):
        raise ValueError(f"{name} {problem}")


def _names(given: list[tuple[str, str]]) -> str:
    return ", ".join(sorted({name for name, _ in given}))
