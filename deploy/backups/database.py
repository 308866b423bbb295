"""The database of the site while it is written to: copied, looked at and put into an empty place."""

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from deploy.console import DeployError
from deploy.services.postgres import programs

SQLITE, POSTGRESQL = "sqlite", "postgresql"
FILES = {SQLITE: "database.sqlite3", POSTGRESQL: "database.pgdump"}
ASKED = "SELECT app, name FROM django_migrations ORDER BY app, name"
SITE = "SELECT uuid FROM agents_siteidentity"


@dataclass(frozen=True)
class Facts:
    migrations: tuple[str, ...]
    site: str


def engine_of(url: str) -> str:
    return SQLITE if urlsplit(url).scheme == SQLITE else POSTGRESQL


def file_of(url: str) -> Path:
    return Path("/" + unquote(urlsplit(url).path).lstrip("/"))


def place_of(url: str) -> str:
    """For people, without who asks it."""
    parts = urlsplit(url)
    return str(file_of(url)) if engine_of(url) == SQLITE else f"{parts.hostname or 'local'}{parts.path}"


def copy(url: str, to: Path) -> Facts:
    """As of one instant, while others go on writing. Raises DeployError; OSError of the target's disk."""
    if engine_of(url) == POSTGRESQL:
        return _dump(url, to)
    file = file_of(url)
    if not file.exists():
        raise DeployError(f"there is no database {file}: nothing to back up. ./ma up makes one")
    copy_sqlite(file, to)
    return facts_of(to)


def copy_sqlite(file: Path, to: Path) -> None:
    try:
        with (
            closing(sqlite3.connect(f"file:{quote(str(file))}?mode=ro", uri=True, timeout=20)) as source,
            closing(sqlite3.connect(to)) as target,
        ):
            source.backup(target)
            # Whoever reads the copy makes no files beside it.
            target.execute("PRAGMA journal_mode=DELETE")
    except sqlite3.Error as error:
        # Whoever calls knows by it that the disk is full.
        if "full" in str(error) or "disk I/O" in str(error):
            raise OSError(28, str(error), str(to)) from error
        raise DeployError(f"{file} cannot be copied: {error}") from None
    with to.open("rb") as written:
        os.fsync(written.fileno())


def facts_of(file: Path) -> Facts:
    """Of a copy that nobody writes. Raises DeployError where it is no database of a site."""
    try:
        with closing(sqlite3.connect(f"file:{quote(str(file))}?immutable=1", uri=True)) as connection:
            rows = tuple(f"{app}.{name}" for app, name in connection.execute(ASKED))
            site = connection.execute(SITE).fetchone()
    except sqlite3.Error as error:
        raise DeployError(f"{file} is no database of a site: {error}") from None
    return Facts(rows, str(site[0]) if site else "")


def problem_of(engine: str, file: Path) -> str:
    """What the database itself says of the copy; empty: it is whole."""
    if engine == POSTGRESQL:
        done = subprocess.run(
            [_program("pg_restore"), "--list", str(file)], capture_output=True, text=True, check=False
        )
        return "" if done.returncode == 0 else done.stderr.strip()
    try:
        with closing(sqlite3.connect(f"file:{quote(str(file))}?immutable=1", uri=True)) as connection:
            said = str(connection.execute("PRAGMA integrity_check(1)").fetchone()[0])
    except sqlite3.Error as error:
        said = str(error)
    return "" if said == "ok" else said


# -- PostgreSQL --------------------------------------------------------------------------------------------

# Parameters of a URL, by the variable that says the same to PostgreSQL's programs.
PARAMETERS = {
    "sslmode": "PGSSLMODE",
    "sslrootcert": "PGSSLROOTCERT",
    "sslcert": "PGSSLCERT",
    "sslkey": "PGSSLKEY",
    "connect_timeout": "PGCONNECT_TIMEOUT",
}


def environment_of(url: str) -> dict[str, str]:
    """Without the password on a command line."""
    parts = urlsplit(url)
    given = dict(parse_qsl(parts.query))
    found = {
        "PGHOST": given.get("host") or unquote(parts.hostname or ""),
        "PGPORT": str(parts.port or ""),
        "PGUSER": unquote(parts.username or ""),
        "PGPASSWORD": unquote(parts.password or ""),
        "PGDATABASE": unquote(parts.path.lstrip("/")),
        **{variable: given[name] for name, variable in PARAMETERS.items() if name in given},
    }
    return os.environ | {name: value for name, value in found.items() if value}


def _program(name: str) -> str:
    """The newest one: an older one does not read a newer server."""
    folder = programs()
    if folder is not None and (folder / name).exists():
        return str(folder / name)
    if (found := shutil.which(name)) is None:
        raise DeployError(f"{name} is missing: apt-get install postgresql-client")
    return found


def _run(url: str, command: Sequence[str], what: str) -> str:
    done = subprocess.run(
        command,
        env=environment_of(url),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        said = done.stderr.strip()
        if "No space left" in said:
            raise OSError(28, said)
        raise DeployError(f"{what}: {said}")
    return done.stdout


def ask(url: str, query: str) -> list[str]:
    command = [_program("psql"), "--no-psqlrc", "-At", "-F", ".", "-c", query]
    return _run(url, command, f"the database {place_of(url)} does not answer").splitlines()


def _dump(url: str, to: Path) -> Facts:
    migrations, site = ask(url, ASKED), ask(url, SITE)
    command = [_program("pg_dump"), "--format=custom", "--no-owner", "--no-privileges", f"--file={to}"]
    _run(url, command, f"the database {place_of(url)} was not copied")
    with to.open("rb") as written:
        os.fsync(written.fileno())
    return Facts(tuple(migrations), "".join(site))


def refuse_filled(url: str) -> None:
    """Raises DeployError where there is a table: nothing that somebody has is written over."""
    tables = "SELECT count(*) FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema')"
    if (count := int(ask(url, tables)[0])) > 0:
        raise DeployError(
            f"the database {place_of(url)} has {count} tables: nothing was changed. Make "
            f"an empty database and "
            "name it in MA_DATABASE_URL or MA_DATABASE_URL_FILE; the old one stays as it is"
        )


def load(url: str, file: Path) -> None:
    """All of it or nothing. Raises DeployError."""
    command = [
        _program("pg_restore"),
        "--no-owner",
        "--no-privileges",
        "--single-transaction",
        "--exit-on-error",
    ]
    command += [f"--dbname={environment_of(url)['PGDATABASE']}", str(file)]
    _run(url, command, f"nothing was restored into {place_of(url)}")
