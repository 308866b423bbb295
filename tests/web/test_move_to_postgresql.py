"""The whole site from SQLite to PostgreSQL by one command, with real databases and processes of their own."""

import os
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from deploy.services.postgres import Cluster
from tests import migrated
from tests.dlq.forked import Forked
from tests.web.test_retention_at_once import ROOT

pytestmark = pytest.mark.process

FILL = """
from datetime import datetime, timezone as tz
from dlq.models import DeadLetter
from tests.web.factories import make_world
world = make_world()
letter = DeadLetter.objects.order_by("pk").first()
letter.exception_text, letter.orig_message_id = "a\\0b", 2**63 - 1
letter.encoded = bytes(range(256))
letter.properties = [{"name": "n\\0", "type": "string", "value": "v\\ud800"}]
letter.seen_at = datetime(2026, 3, 29, 1, 30, 0, 123456, tzinfo=tz.utc)
letter.body_text = "parcel \\u0416\\U0001f600"
letter.save(); letter.content.save()
last = DeadLetter.objects.order_by("-pk").first()
last.delete()
"""
QUIET = ("DELETE FROM console_processheartbeat", "UPDATE agents_server SET last_seen_at = NULL")


def process(url: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return Forked({**os.environ, "MA_DATABASE_URL": url, "PYTHONPATH": str(ROOT)}).run(*arguments)


def succeed(url: str, *arguments: str) -> str:
    done = process(url, *arguments)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def change(source: str, *statements: str) -> None:
    with closing(sqlite3.connect(source.removeprefix("sqlite://"))) as site, site:
        for statement in statements:
            site.execute(statement)


@pytest.fixture
def source(tmp_path: Path) -> str:
    return migrated.make_file(tmp_path / "site.sqlite3")


@pytest.fixture
def target(postgres: Cluster) -> str:
    """An empty database of its own."""
    name = f"moved_{uuid4().hex}"
    with psycopg.connect(postgres.url(), autocommit=True) as cluster:
        cluster.execute(f"CREATE DATABASE {name}".encode())
    return postgres.url(name)


def test_all_of_it_is_there_with_its_ids(source: str, target: str) -> None:
    succeed(source, "shell", "-c", FILL)
    refused = process(source, "move_to_postgresql", target)
    assert "The site runs (beat, feed, web)" in refused.stderr and refused.returncode == 1
    change(source, *QUIET)

    done = process(source, "move_to_postgresql", target)

    assert done.returncode == 0, done.stderr[-2000:]
    assert "have been copied." in done.stdout and "texts cleaned of NUL" in done.stdout
    with psycopg.connect(target) as there:
        row: Any = there.execute(
            "SELECT d.id, exception_text, orig_message_id, encoded, properties, seen_at, body_text "
            "FROM dlq_deadletter d JOIN dlq_lettercontent c ON c.letter_id = d.id ORDER BY d.id LIMIT 1"
        ).fetchone()
        assert row[1:3] == ("a\u2400b", 2**63 - 1) and bytes(row[3]) == bytes(range(256))
        assert row[4] == [{"name": "n\u2400", "type": "string", "value": "v\ufffd"}]
        assert (
            row[5].isoformat() == "2026-03-29T01:30:00.123456+00:00" and row[6] == "parcel \u0416\U0001f600"
        )
        words = there.execute("SELECT count(*) FROM dlq_words WHERE words @@ 'parcel'::tsquery").fetchone()
        assert words == (1,)
        highest: Any = there.execute("SELECT max(id) FROM dlq_deadletter").fetchone()
        following: Any = there.execute(
            "SELECT nextval(pg_get_serial_sequence('dlq_deadletter', 'id'))"
        ).fetchone()
        # The last letter was deleted: its number is not given again.
        assert following[0] > highest[0] + 1

    again = process(source, "move_to_postgresql", target)
    assert again.returncode == 1 and "The target is not empty" in again.stderr
    assert succeed(target, "reindex").startswith("The full-text index has been rebuilt")


def test_what_postgresql_refuses_moves_nothing_and_may_be_mended(source: str, target: str) -> None:
    """Into tables without rows, which a move that was killed leaves."""
    migrated.fill_database(target)
    succeed(source, "shell", "-c", FILL)
    change(source, *QUIET)
    spoil = "UPDATE agents_server SET name = '{}' WHERE id = (SELECT min(id) FROM agents_server)"
    change(source, spoil.format("x" * 500))
    refused = process(source, "move_to_postgresql", target)
    assert refused.returncode == 1 and "agents_server: PostgreSQL refuses a row" in refused.stderr
    with psycopg.connect(target) as there:
        assert there.execute("SELECT count(*) FROM auth_user").fetchone() == (0,)

    change(source, spoil.format("short"))
    succeed(source, "move_to_postgresql", target)


def test_what_is_no_empty_postgresql_is_refused(source: str, target: str, tmp_path: Path) -> None:
    for url, why in ((source, "must be postgresql"), ("nothing", "Invalid database URL")):
        refused = process(source, "move_to_postgresql", url)
        assert refused.returncode == 1 and why in refused.stderr
    with psycopg.connect(target, autocommit=True) as there:
        there.execute("CREATE TABLE somebodys (id int)")
    refused = process(source, "move_to_postgresql", target)
    assert refused.returncode == 1 and "has other tables" in refused.stderr


def test_a_site_whose_migrations_are_behind_is_refused_before_its_tables_are_asked(
    source: str, target: str
) -> None:
    """As after an upgrade that was not started yet."""
    change(
        source,
        "DELETE FROM django_migrations WHERE app = 'console'",
        "DROP TABLE console_processheartbeat",
    )
    refused = process(source, "move_to_postgresql", target)
    assert refused.returncode == 1 and "database are missing" in refused.stderr, refused.stderr
