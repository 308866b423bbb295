"""Databases that are migrated already: made once for each state of the migrations, then copied into every
session. What is copied is migrated again, which changes nothing and takes a tenth of the time."""

import fcntl
import hashlib
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from uuid import uuid4

import psycopg

from deploy.config import REPOSITORY
from deploy.services import postgres
from tests.services import cache

# Of older states of the migrations: one goes back and forth between branches.
KEPT = 8


def place(ending: str) -> Path:
    """Of what the migrations of this source make with the packages that are pinned."""
    content = hashlib.sha256((REPOSITORY / "constraints.txt").read_bytes())
    for file in sorted(REPOSITORY.glob("*/migrations/*.py")):
        content.update(f"{file.relative_to(REPOSITORY)}\0".encode() + file.read_bytes())
    return cache() / "migrated" / f"{content.hexdigest()[:16]}.{ending}"


@contextmanager
def alone() -> Iterator[None]:
    """Sessions that begin at the same time: one migrates, those that wait here get its copy."""
    folder = cache() / "migrated"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def put_file(database: Path) -> bool:
    """Whether there was a copy. Nothing has opened the database yet."""
    known = place("sqlite3")
    if not known.exists():
        return False
    shutil.copyfile(known, database)
    os.utime(known)
    return True


def make_file(database: Path) -> str:
    """The URL of a new database that is migrated, of a site of its own: a migration gives it its id."""
    url = f"sqlite://{database}"
    with alone():
        if not put_file(database):
            _migrate(url)
            keep_file(database)
    with closing(sqlite3.connect(database)) as site, site:
        site.execute("UPDATE agents_siteidentity SET uuid = ?", [uuid4().hex])
    return url


def keep_file(database: Path) -> None:
    with (
        _scratch("sqlite3") as scratch,
        closing(sqlite3.connect(database)) as source,
        closing(sqlite3.connect(scratch)) as target,
    ):
        source.backup(target)


def put_database(url: str) -> bool:
    """As `put_file`, into an empty database of PostgreSQL; one that is not there yet is made."""
    known = place("dump")
    if not known.exists():
        return False
    server, _, name = url.rpartition("/")
    with psycopg.connect(f"{server}/postgres", autocommit=True) as connection:
        if not connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name]).fetchone():
            connection.execute(f'CREATE DATABASE "{name}" TEMPLATE template0')
    _run("pg_restore", "--no-owner", "--exit-on-error", "-d", url, str(known))
    os.utime(known)
    return True


def fill_database(url: str) -> None:
    """As `make_file`, in an empty database of PostgreSQL that is there."""
    with alone():
        if not put_database(url):
            _migrate(url)
            keep_database(url)


def keep_database(url: str) -> None:
    with _scratch("dump") as scratch:
        _run("pg_dump", "-Fc", "-d", url, "-f", str(scratch))


@contextmanager
def _scratch(ending: str) -> Iterator[Path]:
    """A file that becomes the copy when it is whole: stages run beside each other."""
    known = place(ending)
    scratch = known.with_suffix(f".{os.getpid()}")
    try:
        yield scratch
        scratch.replace(known)
    finally:
        scratch.unlink(missing_ok=True)
    by_age = sorted(known.parent.glob(f"*.{ending}"), key=lambda each: each.stat().st_mtime)
    for old in by_age[:-KEPT]:
        old.unlink(missing_ok=True)


def _migrate(url: str) -> None:
    command = [sys.executable, "manage.py", "migrate", "-v0"]
    done = subprocess.run(
        command, cwd=REPOSITORY, env=os.environ | {"MA_DATABASE_URL": url}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def _run(program: str, *arguments: str) -> None:
    programs = postgres.programs()
    assert programs is not None, "PostgreSQL runs, so its programs are there"
    done = subprocess.run([str(programs / program), *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
