"""Describes whether the database was made by a version before 0.9.0. This one has none of its migrations, so
nothing may change it.

Without Django, which takes a second: every start asks before it changes anything."""

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

# A migration of every version before 0.9.0, and of none since.
ASKED = "SELECT 1 FROM django_migrations WHERE app = 'agents' AND name = '0002_launch_control'"
TEXT = """{where} was made by a version before 0.9.0. This version cannot use it; nothing was changed.
Settings, waiting messages and dead letters can be kept, the history of failures cannot.
Details: docs/how-to/upgrade.md. In short:
1. With the old version, while it runs: wait until no KMA has anything left to report, then
   ./ma manage export > settings.yaml, then ./ma down
2. Keep this database unchanged and start with an empty one: {how}
3. With this version: ./ma up --no-demo --adopt-broker{more}, then ./ma manage apply settings.yaml.
   Dead letters are indexed again from the broker; import the user accounts or create them again."""


def refusal(environ: Mapping[str, str]) -> str:
    """Returns what is wrong, where, and what to do. Empty where the database is none of before, or does not
    answer: a start says that better."""
    url = environ.get("MA_DATABASE_URL") or _content(environ.get("MA_DATABASE_URL_FILE", ""))
    parts = urlsplit(url)
    if parts.scheme == "sqlite":
        file = "/" + unquote(parts.path).lstrip("/")
        how = f"move {Path(file).name}, with -wal and -shm if they exist, out of {Path(file).parent}"
        return TEXT.format(where=file, how=how, more="") if _in_sqlite(file) else ""
    if parts.scheme in ("postgresql", "postgres") and _in_postgresql(url):
        where = f"The database {unquote(parts.path.lstrip('/'))} on {parts.hostname}"
        return TEXT.format(where=where, how="set it in MA_DATABASE_URL", more=" --changed")
    return ""


def _content(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8").strip() if file else ""
    except OSError:
        return ""


def _in_sqlite(file: str) -> bool:
    """Returns where no process has it open, nor has left pages in a log, no file is made beside it."""
    how = "mode=ro" if Path(f"{file}-wal").exists() else "immutable=1"
    try:
        with closing(sqlite3.connect(f"file:{quote(file)}?{how}", uri=True)) as connection:
            return connection.execute(ASKED).fetchone() is not None
    except sqlite3.Error:
        return False


def _in_postgresql(url: str) -> bool:
    import psycopg

    try:
        with psycopg.connect(url, connect_timeout=5) as connection:
            return connection.execute(ASKED).fetchone() is not None
    except psycopg.Error:
        return False
