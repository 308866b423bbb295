"""./ma backup and ./ma restore on a data folder: what is whole, what is refused, what a kill leaves."""

import errno
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import AbstractContextManager, closing
from dataclasses import replace
from pathlib import Path

import pytest

from deploy import config as configuration
from deploy import secret_files
from deploy.backups import create, database, restore, sealing
from deploy.backups import manifest as manifests
from deploy.backups.create import Wanted
from deploy.config import REPOSITORY, Config
from deploy.console import DeployError
from deploy.layout import Layout
from tests import migrated

pytestmark = pytest.mark.process

PHRASE = "correct horse battery"
RECORD = "SELECT number, id FROM records ORDER BY number"


@pytest.fixture
def config(tmp_path: Path) -> Config:
    """An installation that does not run: a database, a spool with a record, a journal of the broker."""
    config = configuration.read({"MA_DATA": str(tmp_path / "data")})
    layout = Layout(config.data)
    layout.make_folders()
    secret_files.ensure_all(config, layout)
    migrated.make_file(layout.database)
    spool(layout, "srv-1", 1)
    (layout.broker / "data" / "journal").mkdir(parents=True)
    (layout.broker / "data" / "journal" / "activemq-data-1.amq").write_bytes(b"messages" * 1000)
    return config


def spool(layout: Layout, server: str, records: int) -> None:
    layout.kma(server).mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(layout.kma(server) / "spool.sqlite3")) as file, file:
        file.execute("CREATE TABLE IF NOT EXISTS records (number INTEGER PRIMARY KEY, id TEXT)")
        file.executemany("INSERT INTO records (id) VALUES (?)", [(f"r{n}",) for n in range(records)])


def never() -> AbstractContextManager[None]:
    pytest.fail("nothing runs that had to be stopped")


def back_up(config: Config, target: Path, *, passphrase: str = PHRASE, keep: int = 0) -> Path:
    wanted = Wanted(target, passphrase, messages=False, keep=keep)
    return create.create(config, Layout(config.data), wanted, never, lambda text: None)[0]


def put_back(config: Config, backup: Path, *, whole: bool = False, passphrase: str = PHRASE) -> list[str]:
    said: list[str] = []
    restore.apply(config, Layout(config.data), backup, passphrase, whole=whole, say=said.append)
    return said


def site_of(layout: Layout) -> str:
    return database.facts_of(layout.database).site


def contents(folder: Path) -> dict[str, bytes]:
    return {str(each.relative_to(folder)): each.read_bytes() for each in folder.rglob("*") if each.is_file()}


# -- whole ---------------------------------------------------------------------------------------------------


def test_a_machine_that_was_lost_comes_back_from_a_backup(config: Config, tmp_path: Path) -> None:
    layout = Layout(config.data)
    before = contents(layout.secrets)
    site = site_of(layout)
    folder = back_up(config, tmp_path / "target")
    assert restore.check(folder, PHRASE).opened
    shutil.rmtree(config.data)

    said = put_back(config, tmp_path / "target")
    assert "everything that the backup has" in said[0]
    assert contents(layout.secrets) == before
    assert site_of(layout) == site
    with closing(sqlite3.connect(layout.kma("srv-1") / "spool.sqlite3")) as file:
        assert file.execute(RECORD).fetchall() == [(1, "r0")]
    assert (layout.broker / "data" / "journal" / "activemq-data-1.amq").read_bytes() == b"messages" * 1000
    assert not layout.restore_marker.exists() and not (config.data / restore.STAGED).exists()
    assert not list(config.data.glob("before-restore-*")), "nothing was there to be moved aside"


def test_into_a_used_folder_only_the_database_comes_back(config: Config, tmp_path: Path) -> None:
    layout = Layout(config.data)
    folder = back_up(config, tmp_path / "target")
    spool(layout, "srv-1", 2)
    with closing(sqlite3.connect(layout.database)) as file, file:
        file.execute("CREATE TABLE later (number)")

    said = put_back(config, folder)
    assert "the database; all else here is newer" in said[0]
    with closing(sqlite3.connect(layout.database)) as file:
        assert not file.execute("SELECT 1 FROM sqlite_master WHERE name = 'later'").fetchall()
    with closing(sqlite3.connect(layout.kma("srv-1") / "spool.sqlite3")) as file:
        assert len(file.execute(RECORD).fetchall()) == 3
    (aside,) = config.data.glob("before-restore-*")
    with closing(sqlite3.connect(aside / "db.sqlite3")) as file:
        assert file.execute("SELECT 1 FROM sqlite_master WHERE name = 'later'").fetchall()


def test_everything_replaces_what_is_there_and_keeps_it_aside(config: Config, tmp_path: Path) -> None:
    layout = Layout(config.data)
    folder = back_up(config, tmp_path / "target")
    spool(layout, "srv-1", 2)
    (layout.secrets / "django_key").write_text("another")
    put_back(config, folder, whole=True)
    (aside,) = config.data.glob("before-restore-*")
    assert (aside / "secrets" / "django_key").read_text() == "another"
    assert (layout.secrets / "django_key").read_text() != "another"
    with closing(sqlite3.connect(aside / "kma" / "srv-1" / "spool.sqlite3")) as file:
        assert len(file.execute(RECORD).fetchall()) == 3


def test_what_is_not_in_it_is_said(config: Config, tmp_path: Path) -> None:
    without = back_up(config, tmp_path / "target", passphrase="")
    made = manifests.read(without)
    assert made.left_out == ("secrets", "archive", "other_hosts")
    assert list(create.left_out(list(made.of("database")), still=False)) == [
        "messages", "secrets", "handlings", "archive", "other_hosts"
    ]  # fmt: skip


def test_secrets_are_opened_by_openssl_alone(config: Config, tmp_path: Path) -> None:
    folder = back_up(config, tmp_path / "target")
    key = (Layout(config.data).secrets / "django_key").read_bytes()
    assert key not in (folder / "secrets.tar.enc").read_bytes()
    (tmp_path / "phrase").write_text(PHRASE)
    command = ["openssl", "enc", "-d", "-aes-256-cbc", "-pbkdf2", "-iter", "600000"]
    command += ["-in", str(folder / "secrets.tar.enc"), "-pass", f"file:{tmp_path / 'phrase'}"]
    opened = subprocess.run(command, capture_output=True, check=True).stdout
    assert key in opened


def test_the_database_is_copied_as_of_one_instant_while_it_is_written(config: Config, tmp_path: Path) -> None:
    layout = Layout(config.data)
    with closing(sqlite3.connect(layout.database)) as writer:
        writer.execute("PRAGMA journal_mode=WAL")
        writer.execute("CREATE TABLE pairs (a, b)")
        writer.executemany("INSERT INTO pairs VALUES (?, ?)", [(n, n) for n in range(1000)])
        writer.commit()
        # Open and not committed: of no backup.
        writer.execute("UPDATE pairs SET a = a + 1")
        folder = back_up(config, tmp_path / "target")
    with closing(sqlite3.connect(folder / "database.sqlite3")) as copy:
        assert copy.execute("SELECT count(*), sum(a = b) FROM pairs").fetchone() == (1000, 1000)


# -- damaged -------------------------------------------------------------------------------------------------


def test_every_part_that_was_cut_off_changed_or_lost_is_found(config: Config, tmp_path: Path) -> None:
    folder = back_up(config, tmp_path / "target")
    damaged = 0
    for path in sorted(folder.rglob("*")):
        if path.is_dir():
            continue
        content = path.read_bytes()
        for change in (content[:-1], content[:-1] + bytes([content[-1] ^ 1]), None):
            path.write_bytes(change) if change is not None else path.unlink()
            with pytest.raises(DeployError, match="Take another backup|take another backup"):
                restore.check(folder)
            path.write_bytes(content)
            damaged += 1
    assert damaged == 3 * 5, "database, spool, messages, secrets, manifest"
    restore.check(folder)


def test_who_changes_the_manifest_too_is_found_with_the_passphrase(config: Config, tmp_path: Path) -> None:
    folder = back_up(config, tmp_path / "target")
    made = manifests.read(folder)
    manifests.write(folder, replace(made, made_at="2020-01-01T00:00:00Z"))
    restore.check(folder)
    with pytest.raises(DeployError, match="without the passphrase"):
        restore.check(folder, PHRASE)


def test_a_file_that_nobody_named_is_found(config: Config, tmp_path: Path) -> None:
    folder = back_up(config, tmp_path / "target")
    (folder / "spools" / "more").write_text("x")
    with pytest.raises(DeployError, match="is not part of this backup"):
        restore.check(folder)


def test_a_wrong_passphrase_says_so(config: Config, tmp_path: Path) -> None:
    folder = back_up(config, tmp_path / "target")
    with pytest.raises(sealing.WrongPassphrase):
        restore.check(folder, PHRASE + "!")


def test_what_is_no_backup_says_so(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("x")
    for name, text in (("none", "does not exist"), ("empty", "holds no backup"), ("file", "is no backup")):
        with pytest.raises(DeployError, match=text):
            restore.check(tmp_path / name)


# -- refused -------------------------------------------------------------------------------------------------


def test_a_backup_of_a_newer_program_is_refused_and_nothing_changes(config: Config, tmp_path: Path) -> None:
    layout = Layout(config.data)
    with closing(sqlite3.connect(layout.database)) as file, file:
        row = ("agents", "9001_later", "2026-01-01")
        file.execute("INSERT INTO django_migrations (app, name, applied) VALUES (?, ?, ?)", row)
    folder = back_up(config, tmp_path / "target")
    before = contents(config.data)
    with pytest.raises(DeployError, match=r"does not know: agents\.9001_later"):
        put_back(config, folder)
    assert contents(config.data) == before


def test_nothing_is_restored_under_a_running_site(config: Config, tmp_path: Path) -> None:
    folder = back_up(config, tmp_path / "target")
    before = contents(config.data)
    mark = {"MA_RUN_FOLDER": str(Layout(config.data).run)}
    with subprocess.Popen(["sleep", "60"], env=os.environ | mark) as process:
        try:
            with pytest.raises(DeployError, match="is in use: ./ma down"):
                put_back(config, folder)
        finally:
            process.kill()
    assert contents(config.data) == before


def test_secrets_are_not_restored_without_their_passphrase(config: Config, tmp_path: Path) -> None:
    folder = back_up(config, tmp_path / "target")
    with pytest.raises(DeployError, match="--passphrase-file"):
        put_back(config, folder, whole=True, passphrase="")


def test_a_backup_of_another_kind_of_database_is_refused(config: Config, tmp_path: Path) -> None:
    folder = back_up(config, tmp_path / "target")
    other = configuration.read(
        {"MA_DATA": str(config.data), "MA_DATABASE_URL": "postgresql://u:p@localhost/x"}
    )
    with pytest.raises(DeployError, match="the backup is of SQLite, this installation uses PostgreSQL"):
        put_back(other, folder)


def test_a_target_that_cannot_be_written_is_refused(config: Config, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(DeployError, match="no backup was made: .*Name a folder"):
        back_up(config, tmp_path / "file")
    with pytest.raises(DeployError, match="no backup was made: .*Name a folder"):
        back_up(config, Path("/proc/nowhere"))


def test_a_disk_without_room_is_refused_before_anything_is_written(
    config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(tmp_path)._replace(free=create.SPARE)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    with pytest.raises(DeployError, match="16 MB free, 1[78] MB are needed. Nothing was written"):
        back_up(config, tmp_path / "target")
    assert contents(tmp_path / "target") == {}


def test_a_disk_that_fills_up_meanwhile_leaves_nothing(
    config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(data: bytes, phrase: str) -> bytes:
        raise OSError(errno.ENOSPC, "No space left on device")

    first = back_up(config, tmp_path / "target")
    monkeypatch.setattr(sealing, "encrypted", full)
    with pytest.raises(DeployError, match=r"no backup was made: the disk of .* is full"):
        back_up(config, tmp_path / "target")
    assert [each.name for each in (tmp_path / "target").iterdir()] == [first.name]


# -- killed --------------------------------------------------------------------------------------------------

KILLED = """
import os, signal, sys
from deploy import config as configuration
from deploy.backups import create, restore
from deploy.layout import Layout
module, name, nth = sys.argv[1:4]
place = {"create": create, "manifests": create.manifests, "restore": restore, "path": create.Path}[module]
real, calls = getattr(place, name), [0]
def dying(*arguments, **options):
    calls[0] += 1
    if calls[0] == int(nth):
        os.kill(os.getpid(), signal.SIGKILL)
    return real(*arguments, **options)
setattr(place, name, dying)
config = configuration.read({"MA_DATA": sys.argv[4]})
layout = Layout(config.data)
if sys.argv[5] == "backup":
    wanted = create.Wanted(create.Path(sys.argv[6]), "correct horse battery", False)
    create.create(config, layout, wanted, None, print)
else:
    restore.apply(config, layout, create.Path(sys.argv[6]), "correct horse battery", whole=True, say=print)
"""


def killed(config: Config, place: str, name: str, nth: int, verb: str, path: Path) -> bool:
    """Whether the n-th call was reached, and killed the process."""
    command = [sys.executable, "-c", KILLED, place, name, str(nth), str(config.data), verb, str(path)]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.returncode != 0


@pytest.mark.kill
@pytest.mark.parametrize(
    ("place", "name"),
    [("create", "_spool"), ("create", "_secrets"), ("manifests", "write"), ("manifests", "sync_folder")],
)
def test_a_killed_backup_is_none(config: Config, tmp_path: Path, place: str, name: str) -> None:
    target = tmp_path / "target"
    assert killed(config, place, name, 1, "backup", target)
    (left,) = target.iterdir()
    with pytest.raises(DeployError, match="it is not whole"):
        restore.check(left)
    with pytest.raises(DeployError, match="holds no backup"):
        restore.check(target)
    whole = back_up(config, target)
    assert list(target.iterdir()) == [whole], "what the killed one left is swept away"


@pytest.mark.kill
def test_a_restore_that_is_killed_anywhere_goes_on(config: Config, tmp_path: Path) -> None:
    """Every rename of it in turn; the next start is refused meanwhile, and nothing that was there is lost."""
    layout = Layout(config.data)
    spool(layout, "srv-1", 2)
    folder = back_up(config, tmp_path / "target")
    wanted = contents(folder / "spools")
    nth, reached = 1, True
    while reached:
        shutil.rmtree(layout.data / "kma")
        spool(layout, "srv-2", nth)
        newer = contents(layout.data / "kma")
        reached = killed(config, "path", "rename", nth, "restore", folder)
        if reached:
            assert layout.restore_marker.exists()
            put_back(config, folder)
        assert not layout.restore_marker.exists()
        assert contents(layout.data / "kma") == wanted
        (aside,) = config.data.glob("before-restore-*")
        assert contents(aside / "kma") == newer
        shutil.rmtree(aside)
        nth += 1
    assert nth > 6


def test_a_start_is_refused_while_a_restore_is_half_done(config: Config) -> None:
    Layout(config.data).restore_marker.write_text(json.dumps({"aside": "before-restore-x", "whole": True}))
    done = subprocess.run(
        [sys.executable, str(REPOSITORY / "ma"), "up", "--detach"],
        env={"PATH": os.environ["PATH"], "MA_DATA": str(config.data)}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 1 and "was interrupted: run ./ma restore --apply once more" in done.stderr


# -- kept ----------------------------------------------------------------------------------------------------


def test_older_backups_of_this_site_go_and_those_of_others_stay(config: Config, tmp_path: Path) -> None:
    target = tmp_path / "target"
    first = back_up(config, target)
    other = target / "ma-backup-20200101T000000Z"
    shutil.copytree(first, other)
    manifests.write(other, replace(manifests.read(first), site="another"))
    unread = target / "ma-backup-20200102T000000Z"
    unread.mkdir()
    second, third = back_up(config, target), back_up(config, target, keep=2)
    left = {each.name for each in target.iterdir()}
    assert left == {other.name, unread.name, second.name, third.name}
