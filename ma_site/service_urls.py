"""MA_DATABASE_URL: where the database is, and how its connection is protected. What is not understood is
refused: a `sslmode` that is dropped would be a connection in clear."""

import re
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import SplitResult, parse_qs, parse_qsl, unquote, urlsplit

from contract.encryption import is_local
from contract.redis_url import check_file

SSL_MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
SSL_FILES = ("sslrootcert", "sslcert", "sslkey")
# libpq goes on in clear where the server wants it.
MAY_BE_CLEAR = ("disable", "allow", "prefer")
VERIFYING = ("require", "verify-ca", "verify-full")
# Which server will do: one that takes writes, not a standby.
ROLE = "target_session_attrs"
WRITING = ("read-write", "primary")
POSTGRESQL_PORT = "5432"


def parse_database(url: str) -> dict[str, Any]:
    """Django's DATABASES entry of `sqlite:///ABSOLUTE/PATH` or
    `postgresql://user:pw@host:port,host:port/name?sslmode=…`, with the parameters as OPTIONS. Raises
    ValueError."""
    parts = urlsplit(url)
    if parts.fragment:
        raise ValueError("contains #: write # in a password as %23")
    if parts.scheme == "sqlite":
        return _sqlite(parts)
    if parts.scheme in ("postgresql", "postgres"):
        return _postgresql(parts)
    raise ValueError("must begin with sqlite:// or postgresql://")


def _sqlite(parts: SplitResult) -> dict[str, Any]:
    _refuse_unknown(parts.query, ())
    # Three slashes and four are both in use for an absolute path.
    path = re.sub("^/+", "/", unquote(parts.path))
    if parts.netloc or not path.startswith("/") or path == "/":
        raise ValueError("sqlite needs an absolute path: sqlite:////var/ma/db.sqlite3 or sqlite:///var/…")
    return {"ENGINE": "django.db.backends.sqlite3", "NAME": path, "OPTIONS": {}}


def _postgresql(parts: SplitResult) -> dict[str, Any]:
    name = unquote(parts.path.lstrip("/"))
    if not name:
        raise ValueError("the name of the database is missing: postgresql://user:password@host:port/name")
    given = _refuse_unknown(parts.query, ("sslmode", *SSL_FILES, ROLE))
    servers = _servers(parts)
    role = {ROLE: _role(given.pop(ROLE, None), len(servers))}
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": name,
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": ",".join(host for host, _port in servers),
        "PORT": ",".join(port for _host, port in servers),
        "OPTIONS": {name: value for name, value in role.items() if value} | _tls(given, servers),
    }


def _servers(parts: SplitResult) -> list[tuple[str, str]]:
    """Host and port of each: libpq asks them in turn. Of one server both may be empty."""
    given = parts.netloc.rpartition("@")[2].split(",")
    each = [urlsplit(f"//{one}") for one in given]
    found = [(unquote(one.hostname or ""), str(one.port or "")) for one in each]
    if len(found) > 1:
        if not all(host for host, _port in found):
            raise ValueError("has a comma without a host beside it")
        found = [(host, port or POSTGRESQL_PORT) for host, port in found]
    if len(set(found)) < len(found):
        raise ValueError("names a server twice")
    return found


def _role(given: str | None, servers: int) -> str:
    """Of several servers one takes writes. A read-only one that answered would break every write until
    somebody restarts the site."""
    if given is not None and given not in WRITING:
        raise ValueError(f"{ROLE} must be one of {', '.join(WRITING)}: the site writes")
    return given or (WRITING[0] if servers > 1 else "")


def _refuse_unknown(query: str, known: tuple[str, ...]) -> dict[str, str]:
    given = parse_qsl(query, keep_blank_values=True)
    names = [name for name, _ in given]
    if unknown := sorted({name for name in names if name not in known}):
        allowed = f"known: {', '.join(known)}" if known else "none are allowed"
        raise ValueError(f"has unknown parameters: {', '.join(unknown)}; {allowed}")
    if len(set(names)) < len(names):
        raise ValueError("has a duplicate parameter")
    return dict(given)


def _tls(given: dict[str, str], servers: list[tuple[str, str]]) -> dict[str, str]:
    """Files without a mode that needs TLS would be ignored whenever the server speaks without. A server on
    another machine is verified unless the URL says otherwise."""
    if not all(is_local(host) for host, _port in servers):
        given = {"sslmode": "verify-full", **given}
    files = [name for name in SSL_FILES if name in given]
    mode = given.get("sslmode")
    if mode is not None and mode not in SSL_MODES:
        raise ValueError(f"sslmode must be one of {', '.join(SSL_MODES)}")
    if files and mode not in VERIFYING:
        raise ValueError(f"{', '.join(files)} needs sslmode={', '.join(VERIFYING[:-1])} or {VERIFYING[-1]}")
    if ("sslcert" in given) != ("sslkey" in given):
        raise ValueError("sslcert and sslkey must be set together")
    for name in files:
        check_file(name, given[name])
    return given


# -- the server that takes e-mail, as a URL of the environment -----------------------------------------------


@dataclass(frozen=True, slots=True)
class Email:
    """A server that takes e-mail. `security`: "", "starttls" or "tls"."""

    host: str
    port: int
    sender: str
    user: str = ""
    password: str = field(default="", repr=False)
    security: str = ""


EMAIL_PORTS = {"smtp": 25, "smtp+starttls": 587, "smtps": 465}
EMAIL_SECURITY = {"smtp": "", "smtp+starttls": "starttls", "smtps": "tls"}


def parse_email(url: str) -> Email:
    """`smtp://[user:password@]host[:port]/?from=ADDRESS`, also smtp+starttls:// and smtps://."""
    parts = urlsplit(url)
    if parts.scheme not in EMAIL_PORTS:
        raise ValueError(f"must begin with {', '.join(f'{scheme}://' for scheme in EMAIL_PORTS)}")
    query = parse_qs(parts.query)
    sender = query.pop("from", [""])[-1]
    if query or parts.path not in ("", "/"):
        raise ValueError("accepts only ?from=ADDRESS after the host")
    if "@" not in sender or not sender.isprintable():
        raise ValueError("needs the address of the sender: smtp://host:port/?from=ma@example.org")
    if not parts.hostname:
        raise ValueError("needs a host: smtp://host:port/?from=ma@example.org")
    if bool(parts.username) != bool(parts.password):
        raise ValueError("needs both a user and a password, or neither")
    return Email(
        host=parts.hostname,
        port=parts.port or EMAIL_PORTS[parts.scheme],
        sender=sender,
        user=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
        security=EMAIL_SECURITY[parts.scheme],
    )
