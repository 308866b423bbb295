"""Describes whether the database is another version's: of before 0.9.0, which has other migrations, or of a
newer one, which has more. Nothing may change it, and no process of this one may use it.

Without Django, which takes a second: every start asks before it changes anything."""

import sqlite3
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from contract import __version__

Applied = frozenset[tuple[str, str]]

# A migration of every version before 0.9.0, and of none since.
OF_BEFORE = ("agents", "0002_launch_control")
TEXT = """{where} was made by a version before 0.9.0. This version cannot use it; nothing was changed.
Settings, waiting messages and dead letters can be kept, the history of failures cannot.
Details: docs/how-to/upgrade.md. In short:
1. With the old version, while it runs: wait until no KMA has anything left to report, then
   ./ma manage export > settings.yaml, then ./ma down
2. Keep this database unchanged and start with an empty one: {how}
3. With this version: ./ma up --no-demo --adopt-broker{more}, then ./ma manage apply settings.yaml.
   Dead letters are indexed again from the broker; import the user accounts or create them again."""


NEWER = """{where} was migrated by a newer version: it has {names}, which this version ({version}) does not
know. Nothing was changed. Start the newer version, or restore the backup that was made before the upgrade:
docs/how-to/upgrade.md."""
APPS = ("agents", "alerts", "console", "dlq", "failures", "insights", "metrics", "retention")
APPLIED = "SELECT app, name FROM django_migrations"


def refusal(environ: Mapping[str, str]) -> str:
    """Returns what is wrong, where, and what to do. Empty where the database is none of before, or does not
    answer: a start says that better."""
    url = environ.get("MA_DATABASE_URL") or _content(environ.get("MA_DATABASE_URL_FILE", ""))
    parts = urlsplit(url)
    if parts.scheme == "sqlite":
        file = "/" + unquote(parts.path).lstrip("/")
        how = f"move {Path(file).name}, with -wal and -shm if they exist, out of {Path(file).parent}"
        return _judged(_in_sqlite(file), file, how, "")
    if parts.scheme in ("postgresql", "postgres"):
        where = f"The database {unquote(parts.path.lstrip('/'))} on {parts.hostname}"
        return _judged(_in_postgresql(url), where, "set it in MA_DATABASE_URL", " --changed")
    return ""


def refuse(environ: Mapping[str, str]) -> None:
    """For a process that begins. Ends it."""
    if text := refusal(environ):
        sys.exit(text)


def _judged(applied: Applied, where: str, how: str, more: str) -> str:
    if OF_BEFORE in applied:
        return TEXT.format(where=where, how=how, more=more)
    if not (unknown := unknown_of(applied)):
        return ""
    return NEWER.format(where=where, names=", ".join(unknown), version=__version__)


def unknown_of(applied: Applied) -> list[str]:
    """`app.name` of migrations of our apps that this program has not."""
    root = Path(__file__).resolve().parent.parent
    return sorted(
        f"{app}.{name}"
        for app, name in applied
        if app in APPS and not (root / app / "migrations" / f"{name}.py").exists()
    )


def _content(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8").strip() if file else ""
    except OSError:
        return ""


def _in_sqlite(file: str) -> Applied:
    """Returns where no process has it open, nor has left pages in a log, no file is made beside it."""
    how = "mode=ro" if Path(f"{file}-wal").exists() else "immutable=1"
    try:
        with closing(sqlite3.connect(f"file:{quote(file)}?{how}", uri=True)) as connection:
            return frozenset(connection.execute(APPLIED))
    except sqlite3.Error:
        return frozenset()


def _in_postgresql(url: str) -> Applied:
    import psycopg

    try:
        with psycopg.connect(url, connect_timeout=5) as connection:
            return frozenset((str(app), str(name)) for app, name in connection.execute(APPLIED))
    except psycopg.Error:
        return frozenset()
