"""Where the database lies, how several processes write side by side, and what stays on its disk."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from django.db import connection
from django.db.models import QuerySet

from console.jobs import crash


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
            f"PostgreSQL may lose committed data when its machine fails: {', '.join(missing)} is off",
            "Enable it in postgresql.conf (or for the role) and reload: KMAs soon delete what the MA has "
            "confirmed.",
        )


def _asked(question: str) -> Any:
    with connection.cursor() as cursor:
        cursor.execute(question)
        return cursor.fetchone()[0]


# -- how a program of Java reaches it, with the same TLS as Django's connection ------------------------------
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
    hosts, ports = (known["HOST"] or "localhost").split(","), (known["PORT"] or "5432").split(",")
    servers = ",".join(f"{host}:{port}" for host, port in zip(hosts, ports, strict=True))
    parameters = {"connectTimeout": "10", "tcpKeepAlive": "true", **_tls(known.get("OPTIONS") or {})}
    if len(hosts) > 1:
        parameters["targetServerType"] = "primary"
    database, asked = quote(str(known["NAME"]), safe=""), urlencode(parameters, quote_via=quote)
    return f"jdbc:postgresql://{servers}/{database}?{asked}"


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


# -- how long a transaction may write ------------------------------------------------------------------------
# SQLite has one writer at a time. PostgreSQL writes beside all others, who wait only for rows that they
# share.


# Where it keeps every writer waiting, at most 50 ms: half of it, because none is like the one before.
SHARED_SECONDS = 0.025
# Where it locks only rows that nobody else writes: so long that its commit is a small part of it, so short
# that the disk has not much to do at once.
ALONE_SECONDS = 0.1
# On PostgreSQL the disk is shared: what others commit waits for what a transaction has written. A pause is so
# much of the time that this took.
SHARE_OF_OTHERS = 0.35


def seconds_alone() -> float:
    """Returns how long a transaction may write rows that nobody else writes."""
    return SHARED_SECONDS if connection.vendor == "sqlite" else ALONE_SECONDS


def let_others_write(took: float = 0.0) -> None:
    """Pauses after a transaction of so many seconds. Those who wait for SQLite look again only every few
    milliseconds."""
    pause = min(0.1, max(0.01, took)) if connection.vendor == "sqlite" else took * SHARE_OF_OTHERS
    time.sleep(pause)


# -- the log of SQLite: PostgreSQL has processes of its own for it -------------------------------------------
# SQLite moves what was committed from its log into the file after the commit that makes the log long, while
# nobody is kept waiting but who committed. Where that is done apart, a transaction takes as long as it holds
# the lock.


@contextmanager
def checkpoints_apart() -> Iterator[None]:
    """Lets no commit of this connection do it while this is entered."""
    if connection.vendor != "sqlite":
        yield
        return
    before = _pragma("wal_autocheckpoint")
    _pragma("wal_autocheckpoint=0")
    try:
        yield
    finally:
        _pragma(f"wal_autocheckpoint={before}")


def checkpoint(*, emptied: bool = False) -> None:
    """Moves it on as far as those who read allow; `emptied`: until then the log holds pages as they were.
    Inside a transaction it does nothing."""
    if connection.vendor == "sqlite" and not connection.in_atomic_block:
        _pragma(f"wal_checkpoint({'TRUNCATE' if emptied else 'PASSIVE'})")


def _pragma(words: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(f"PRAGMA {words}")
        return int(cursor.fetchone()[0])


# -- what is deleted -----------------------------------------------------------------------------------------


def overwrite_deleted() -> None:
    """Makes this connection write zeros over what it deletes from here on."""
    if connection.vendor == "sqlite":
        _pragma("secure_delete = ON")


def raw_delete(rows: QuerySet[Any]) -> int:
    """Deletes without the ORM's collector, which reads all that it deletes, and returns how many."""
    # Of none it answers None.
    return rows.order_by()._raw_delete(rows.db) or 0


def shrink(rows: QuerySet[Any], known: Sequence[Any], **values: Any) -> None:
    """Sets these values, which make the rows smaller; `known`: the same rows with what they hold besides.

    SQLite joins the pages of rows that are deleted; one that an UPDATE has made smaller keeps its page for
    itself: what is stored later does not fit in. So there they are written again."""
    rewritten = connection.vendor == "sqlite"
    if rewritten:
        raw_delete(rows)
    crash.point("shrink: rows taken out")
    if not rewritten:
        rows.update(**values)
        return
    for each in known:
        vars(each).update(values)
    rows.model._default_manager.bulk_create(known)
