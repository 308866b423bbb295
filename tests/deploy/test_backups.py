"""Backups: whole or not there, checked before they are believed, and put back beside what was there."""

import errno
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from deploy import backups
from deploy.backups import Installation, check, forget, put_back, take
from deploy.config import REPOSITORY
from deploy.console import DeployError
from deploy.services.postgres import Cluster
from tests.kit.failing_calls import Fault, each_nth

pytestmark = pytest.mark.process
NOW = datetime(2026, 11, 27, 12, 0, tzinfo=UTC)


def database(path: Path, *rows: str) -> Path:
    with closing(sqlite3.connect(path)) as made:
        made.execute("PRAGMA journal_mode=WAL")
        made.execute("CREATE TABLE said (text TEXT)")
        made.executemany("INSERT INTO said VALUES (?)", [(row,) for row in rows])
        made.commit()
    return path


def rows(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as read:
        return [text for (text,) in read.execute("SELECT text FROM said ORDER BY text")]


@pytest.fixture
def what(tmp_path: Path) -> Installation:
    return made(tmp_path)


def made(folder: Path) -> Installation:
    data = folder / "data"
    (data / "secrets").mkdir(parents=True)
    (data / "secrets" / "django_key").write_text("a planted secret")
    (data / "journal").mkdir()
    (data / "journal" / "1").write_text("messages")
    database(data / "db.sqlite3", "first", "second")
    return Installation(
        "0.10.0", f"sqlite://{data / 'db.sqlite3'}", data / "secrets", {"broker": data / "journal"}
    )


@pytest.fixture
def passphrase(tmp_path: Path) -> Path:
    file = tmp_path / "passphrase"
    file.write_text("correct horse\n")
    return file


def test_a_backup_says_what_is_in_it_and_what_is_not(what: Installation, tmp_path: Path) -> None:
    backup = take(what, tmp_path / "kept", None, NOW)
    assert backup.name == "ma-20261127T120000Z" and backup.stat().st_mode & 0o077 == 0
    manifest = check(backup)
    assert [part.name for part in manifest.parts] == ["database.sqlite3"]
    assert manifest.stopped_seconds is None and manifest.version == "0.10.0"
    assert [line.partition(":")[0] for line in manifest.left_out] == [
        "messages not included", "secrets not included",
    ]  # fmt: skip
    assert rows(backup / "database.sqlite3") == ["first", "second"]


def test_what_is_written_meanwhile_does_not_tear_it(what: Installation, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "data" / "db.sqlite3")) as writer:
        writer.execute("INSERT INTO said VALUES ('not committed')")
        backup = take(what, tmp_path / "kept", None, NOW)
        writer.commit()
    assert rows(backup / "database.sqlite3") == ["first", "second"]


def test_secrets_are_encrypted_and_messages_copied_while_it_is_stopped(
    what: Installation, tmp_path: Path, passphrase: Path
) -> None:
    backup = take(what, tmp_path / "kept", passphrase, NOW, stopped=True)
    manifest = check(backup)
    assert {part.name for part in manifest.parts} == {"broker.tar", "database.sqlite3", "secrets.tar.enc"}
    assert manifest.left_out == [] and manifest.stopped_seconds is not None
    assert all(b"planted" not in path.read_bytes() for path in backup.iterdir())

    opened = subprocess.run(
        ["openssl", *backups.CIPHER, "-d", "-pass", f"file:{passphrase}", "-in", backup / "secrets.tar.enc"],
        capture_output=True, check=True,
    )  # fmt: skip
    assert b"a planted secret" in opened.stdout


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 1)


def change(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(100)
        file.write(b"X")


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (cut, r"has \d+ bytes, not \d+: it was cut off"),
        (change, "was changed: its SHA-256 is another one"),
        (Path.unlink, "is missing"),
    ],
    ids=["cut off", "changed", "missing"],
)
def test_a_damaged_backup_is_not_believed(
    what: Installation, tmp_path: Path, harm: Callable[[Path], None], said: str
) -> None:
    backup = take(what, tmp_path / "kept", None, NOW)
    harm(backup / "database.sqlite3")
    before = (tmp_path / "data" / "db.sqlite3").read_bytes()
    for asks in (lambda: check(backup), lambda: put_back(backup, what, NOW)):
        with pytest.raises(DeployError, match=said):
            asks()
    assert (tmp_path / "data" / "db.sqlite3").read_bytes() == before


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "is no backup: it has no manifest.json, or was cut off"),
        ("{", "cannot be read"),
        ("{}", "cannot be read"),
        ('{"version": "1", "taken_at": "x", "parts": [], "format": 2}', "has format 2; this version reads 1"),
    ],
)
def test_a_manifest_that_is_none_is_told(tmp_path: Path, text: str | None, said: str) -> None:
    if text is not None:
        (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(DeployError, match=said):
        check(tmp_path)


def test_a_restore_keeps_what_was_there_aside(what: Installation, tmp_path: Path) -> None:
    backup = take(what, tmp_path / "kept", None, NOW)
    place = tmp_path / "data" / "db.sqlite3"
    with closing(sqlite3.connect(place)) as later:
        later.execute("INSERT INTO said VALUES ('third')")
        later.commit()
    said = put_back(backup, what, NOW)
    assert rows(place) == ["first", "second"]
    assert rows(place.with_name("db.sqlite3.before-20261127T120000Z")) == ["first", "second", "third"]
    assert any("messages not included" in line for line in said)
    assert any("not in it: failures" in line for line in said)


def test_a_restore_fills_an_empty_place(what: Installation, tmp_path: Path) -> None:
    backup = take(what, tmp_path / "kept", None, NOW)
    empty = Installation("0.10.1", f"sqlite://{tmp_path / 'new' / 'db.sqlite3'}", None)
    put_back(backup, empty, NOW)
    assert rows(tmp_path / "new" / "db.sqlite3") == ["first", "second"]


def test_a_backup_of_a_later_version_is_refused(what: Installation, tmp_path: Path) -> None:
    backup = take(what, tmp_path / "kept", None, NOW)
    older = Installation("0.9.0", what.database_url, None)
    with pytest.raises(DeployError, match=r"is of version 0\.10\.0, this one is 0\.9\.0"):
        put_back(backup, older, NOW)


def test_only_the_newest_are_kept(what: Installation, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    made = [take(what, kept, None, NOW + timedelta(days=day)) for day in range(4)]
    (kept / "ma-notes").mkdir()
    assert forget(kept, 0) == []
    assert forget(kept, 2) == made[:2]
    assert sorted(path.name for path in kept.iterdir()) == [
        "ma-20261129T120000Z",
        "ma-20261130T120000Z",
        "ma-notes",
    ]


FAULTS = [
    Fault("write", errno.ENOSPC), Fault("open", errno.ENOSPC), Fault("sync", errno.EIO),
    Fault("rename", errno.EIO),
]  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS, ids=str)
def test_a_disk_that_fails_anywhere_leaves_no_half_backup(tmp_path: Path, fault: Fault) -> None:
    def scenario(folder: Path, repair: Callable[[], None]) -> tuple[str, list[str], str]:
        what, error = Installation("1", f"sqlite://{folder / 'data' / 'db.sqlite3'}", None), ""
        try:
            take(what, folder / "kept", None, NOW)
        except DeployError as problem:
            error = str(problem)
        repair()
        kept = folder / "kept"
        return error, sorted(path.name for path in kept.iterdir()) if kept.exists() else [], ""

    def before(folder: Path) -> None:
        (folder / "data").mkdir()
        database(folder / "data" / "db.sqlite3", "first")

    for outcome in each_nth(tmp_path, fault, scenario, before=before):
        assert outcome.error is None, outcome
        error, names, _ = outcome.result
        # SQLite does not mind a folder that it cannot sync; all of it is synced once more.
        assert error or not outcome.failed or "fdatasync" in outcome.failed, outcome
        if error:
            assert "the backup was not made" in error and not [name for name in names if name[0] == "."]
        for name in names:
            check(outcome.folder / "kept" / name)


def test_one_that_is_killed_leaves_none_and_the_next_one_clears_up(
    what: Installation, tmp_path: Path
) -> None:
    """Killed at each of the steps that it waits at."""
    program = (
        "import sys, os, signal\nfrom pathlib import Path\nfrom datetime import datetime, UTC\n"
        "from deploy import backups\n"
        "left = int(sys.argv[3])\n"
        "def sync(path):\n"
        "    global left\n"
        "    left -= 1\n"
        "    if left == 0: os.kill(os.getpid(), signal.SIGKILL)\n"
        "backups._sync_file = backups._sync_folder = sync\n"
        "what = backups.Installation('1', sys.argv[1], None)\n"
        "backups.take(what, Path(sys.argv[2]), None, datetime.now(UTC))\n"
    )
    kept = tmp_path / "kept"
    for step in (1, 2, 3):
        command = [sys.executable, "-c", program, what.database_url, str(kept), str(step)]
        assert subprocess.run(command, cwd=REPOSITORY).returncode == -signal.SIGKILL
        (left,) = kept.iterdir()
        assert left.name.startswith(".unfinished-")
        if step == 1:
            with pytest.raises(DeployError, match="is no backup"):
                check(left)
    whole = take(what, kept, None, NOW)
    assert list(kept.iterdir()) == [whole]


@pytest.fixture
def filled(postgres: Cluster) -> Iterator[str]:
    import psycopg

    name = f"backup_{os.getpid()}_{time.monotonic_ns()}"
    with psycopg.connect(postgres.url(), autocommit=True) as server:
        server.execute(f"CREATE DATABASE {name}")
        server.execute(f"CREATE DATABASE {name}_new")
    with psycopg.connect(postgres.url(name)) as made:
        made.execute("CREATE TABLE said (text TEXT)")
        made.execute("INSERT INTO said VALUES ('first')")
    yield name


def test_a_postgresql_is_dumped_and_put_into_an_empty_one_only(
    postgres: Cluster, filled: str, tmp_path: Path
) -> None:
    import psycopg

    backup = take(Installation("1", postgres.url(filled), None), tmp_path / "kept", None, NOW)
    assert [part.name for part in check(backup).parts] == ["database.dump"]
    put_back(backup, Installation("1", postgres.url(f"{filled}_new"), None), NOW)
    with psycopg.connect(postgres.url(f"{filled}_new")) as read:
        assert read.execute("SELECT text FROM said").fetchall() == [("first",)]
    with pytest.raises(DeployError, match="pg_restore failed: .*already exists"):
        put_back(backup, Installation("1", postgres.url(filled), None), NOW)
    with pytest.raises(DeployError, match="pg_dump failed"):
        take(Installation("1", postgres.url("no_such"), None), tmp_path / "kept", None, NOW + timedelta(1))
    assert json.loads((backup / "manifest.json").read_text())["left_out"]
