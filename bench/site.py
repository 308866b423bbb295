"""A site for a bench: an empty database of its own, an environment in which nothing else is reachable, and
Django set up in the process of a part."""

import importlib
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench import Bound, Delay, Line, Measure

DATABASES = ("sqlite", "postgresql")
NOWHERE = "127.0.0.1:1"
# As docs/how-to/postgresql.md wants it for millions of protocols; what is set beside the product has it too.
OF_A_LARGE_HOUSE = {"max_wal_size": "8GB"}
_LINES: dict[str, type[Line]] = {kind.__name__: kind for kind in (Measure, Delay, Bound)}


@contextmanager
def database(kind: str, folder: Path) -> Iterator[str]:
    """The address of an empty one; PostgreSQL as a throw-away cluster that waits for the disk as any other
    does."""
    if kind == "sqlite":
        yield f"sqlite://{folder / 'bench.sqlite3'}"
        return
    from deploy.services import postgres

    cluster = postgres.start({**postgres.DURABLE, **OF_A_LARGE_HOUSE})
    try:
        yield cluster.url()
    finally:
        cluster.stop()


def environment(folder: Path, database_url: str, more: Mapping[str, str] | None = None) -> dict[str, str]:
    """`more` wins."""
    (folder / "static").mkdir(exist_ok=True)
    return {
        "DJANGO_SETTINGS_MODULE": "ma_site.settings",
        "MA_SECRET_KEY": "only-for-benches-only-for-benches-only-for-benches-only-for-benches",
        "MA_DATABASE_URL": database_url,
        "MA_REDIS_URL": f"redis://:none@{NOWHERE}/0",
        "MA_AMQP_URL": f"amqp://{NOWHERE}",
        "MA_STOMP_ADDRESS": NOWHERE,
        "MA_BROKER_USER": "none",
        "MA_BROKER_PASSWORD": "none",
        "MA_ALLOWED_HOSTS": "testserver,127.0.0.1",
        "MA_BASE_URL": "http://testserver",
        "MA_DATA": str(folder),
        "MA_LOG_LEVEL": "ERROR",
    } | dict(more or {})


def set_up() -> None:
    """Once per process: a site knows one database."""
    import django
    from django.conf import settings

    django.setup()
    # As served: collected, without the manifest that a build makes.
    settings.STORAGES["staticfiles"] = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
    from django.core.management import call_command
    from django.db import connection

    call_command("migrate", verbosity=0)
    # None that serves has migrated. One that took thousands of locks at once is slower for good where a
    # statement reads a hundred tables: 15 ms instead of 8.
    connection.close()
    importlib.import_module("ma_site.wsgi")  # what a process does before it serves


def packed(line: Line) -> dict[str, Any]:
    return {"kind": type(line).__name__, **asdict(line)}


def unpacked(line: dict[str, Any]) -> Line:
    """As `packed` wrote it."""
    return _LINES[str(line["kind"])](**{name: value for name, value in line.items() if name != "kind"})


def folder() -> Path:
    return Path(os.environ["MA_DATA"])
