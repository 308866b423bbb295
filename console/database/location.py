"""Where the database lies, whether it keeps what it confirms, and how others reach it."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from django.db import connection


def database_file() -> Path | None:
    """Returns the file of SQLite; None: a server has the database."""
    return Path(str(connection.settings_dict["NAME"])) if connection.vendor == "sqlite" else None


def database_bytes() -> int | None:
    if file := database_file():
        return file.stat().st_size if file.exists() else None
    return int(_asked("SELECT pg_database_size(current_database())"))


def server_clock() -> datetime | None:
    """Returns the time on the server of the database; None: it has none of its own."""
    if database_file():
        return None
    now: datetime = _asked("SELECT clock_timestamp()")
    return now


# Of PostgreSQL: where one of these is off, a commit may be gone after the machine failed, though its KMA was
# told that it is stored and keeps its copy for some hours only.
LASTING = ("fsync", "full_page_writes", "synchronous_commit")


def database_version() -> str:
    """Returns the name of the database with its version, of SQLite with the mode of its journal."""
    told = _asked("PRAGMA journal_mode" if database_file() else "SHOW server_version")
    return f"{connection.display_name} ({told})"


def durability_problems() -> Iterator[tuple[str, str]]:
    """Yields why what was confirmed, or what is read meanwhile, is not safe, each with what to do."""
    if database_file():
        if (mode := _asked("PRAGMA journal_mode")) != "wal":
            yield (
                f"SQLite is in journal mode {mode}, not wal",
                "Put the file on a local disk: WAL needs shared memory.",
            )
    elif missing := [name for name in LASTING if _asked(f"SHOW {name}") == "off"]:
        yield (
            f"PostgreSQL may lose what it has confirmed when its machine fails: {', '.join(missing)} is off",
            "Switch it on in postgresql.conf (or for the role) and reload: KMAs soon delete what is said to "
            "be stored.",
        )


def _asked(question: str) -> Any:
    with connection.cursor() as cursor:
        cursor.execute(question)
        return cursor.fetchone()[0]


# -- how a program of Java reaches it, with the same TLS as Django's connection ------------------------------
#
# pgjdbc takes the names that libpq has, with two differences. Its `require` verifies nothing, where libpq's
# verifies the authority as soon as `sslrootcert` is given. And it reads a client's key as PKCS-8 in DER, or
# PKCS-12, never as PEM.


PKCS12 = (".p12", ".pfx")
DER = ".pk8"
PEM = b"-----BEGIN"


class KeyUnreadable(Exception):
    """The driver cannot read the client's `key` as it is; `converted`: where it finds one in DER."""

    def __init__(self, key: Path, converted: Path) -> None:
        super().__init__(str(key))
        self.key, self.converted = key, converted


def jdbc_url(known: Mapping[str, Any]) -> str:
    """Makes it of an entry of DATABASES. Raises KeyUnreadable."""
    if known["ENGINE"].endswith("sqlite3"):
        # Read only: a database that is away is told of instead of made anew.
        return f"jdbc:sqlite:{known['NAME']}?open_mode=1&busy_timeout=20000"
    host, port = known["HOST"] or "localhost", known["PORT"] or "5432"
    parameters = {"connectTimeout": "10", "tcpKeepAlive": "true", **_tls(known.get("OPTIONS") or {})}
    database, asked = quote(str(known["NAME"]), safe=""), urlencode(parameters, quote_via=quote)
    return f"jdbc:postgresql://{host}:{port}/{database}?{asked}"


def _tls(options: Mapping[str, Any]) -> dict[str, str]:
    found = {name: str(options[name]) for name in ("sslmode", "sslrootcert", "sslcert") if options.get(name)}
    if found.get("sslmode") == "require" and "sslrootcert" in found:
        found["sslmode"] = "verify-ca"
    if key := options.get("sslkey"):
        found["sslkey"] = _readable_key(Path(str(key)))
    return found


def _readable_key(key: Path) -> str:
    """The key itself, or the one in DER beside it."""
    if key.suffix in PKCS12 or not key.read_bytes().startswith(PEM):
        return str(key)
    converted = key.with_name(key.name + DER)
    if converted.exists():
        return str(converted)
    raise KeyUnreadable(key, converted)
