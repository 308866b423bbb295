"""A database of before 0.9.0 is told by its history, and refused before anything is changed."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest

from console import old_database
from deploy import config as configuration
from deploy import manage
from deploy.config import REPOSITORY
from deploy.console import DeployError
from deploy.layout import Layout
from deploy.services.postgres import Cluster

TABLE = "CREATE TABLE django_migrations (id integer, app varchar(255), name varchar(255))"
ROW = "INSERT INTO django_migrations VALUES (1, 'agents', '{name}')"
BEGIN = """
from celery import signals
import ma_site.celery
signals.{role}_init.send(sender=None)
"""
OF_BEFORE, OF_TODAY = "0002_launch_control", "0001_initial"


def sqlite(folder: Path, name: str = OF_BEFORE) -> Path:
    file = folder / "a % b" / "db.sqlite3"
    file.parent.mkdir(exist_ok=True)
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(TABLE)
        connection.execute(ROW.format(name=name))
    return file


@pytest.fixture
def database(postgres: Cluster) -> Iterator[str]:
    name = f"history_{uuid4().hex[:12]}"
    with psycopg.connect(postgres.url("postgres"), autocommit=True) as server:
        server.execute(f"CREATE DATABASE {name}")
        yield postgres.url(name)
        server.execute(f"DROP DATABASE {name} WITH (FORCE)")


def test_one_in_sqlite_is_told_with_its_place(tmp_path: Path) -> None:
    file = sqlite(tmp_path)
    told = old_database.refusal({"MA_DATABASE_URL": f"sqlite://{file}".replace(" % ", "%20%25%20")})
    assert told.startswith(f"{file} was made by a version before 0.9.0")
    assert f"move db.sqlite3, with -wal and -shm if they exist, out of {file.parent}" in told
    assert [*file.parent.iterdir()] == [file], "nothing is made beside it"


@pytest.mark.process
def test_one_of_a_newer_version_is_told_and_no_process_begins(tmp_path: Path) -> None:
    file = sqlite(tmp_path, OF_TODAY)
    url = {"MA_DATABASE_URL": f"sqlite://{file}".replace(" % ", "%20%25%20")}
    assert old_database.refusal(url) == ""
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("INSERT INTO django_migrations VALUES (2, 'auth', '9000_of_django')")
    assert old_database.refusal(url) == "", "that is Django's"
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute(ROW.format(name="9001_later"))
    told = old_database.refusal(url)
    assert told.startswith(
        f"{file} was migrated by a newer version: it has agents.9001_later, which this ver"
    )
    for program in (
        ["-c", "import ma_site.wsgi"],
        ["manage.py", "follow_dead_letters"],
        ["manage.py", "migrate"],
    ):
        done = subprocess.run(
            [sys.executable, *program], cwd=REPOSITORY, env=os.environ | url, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        assert done.returncode == 1 and "agents.9001_later" in done.stderr, (program, done.stderr)
    for role in ("worker", "beat"):
        done = subprocess.run(
            [sys.executable, "-c", BEGIN.format(role=role)], cwd=REPOSITORY, env=os.environ | url,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 1 and "agents.9001_later" in done.stderr, (role, done.stderr)


def test_one_whose_site_was_killed_is_told(tmp_path: Path) -> None:
    file = tmp_path / "db.sqlite3"
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(TABLE)
        connection.execute(ROW.format(name=OF_BEFORE))
        connection.commit()
        for each in (file, Path(f"{file}-wal")):
            (tmp_path / f"of-{each.name}").write_bytes(each.read_bytes())
    assert old_database.refusal({"MA_DATABASE_URL": f"sqlite://{tmp_path}/of-db.sqlite3"})


def test_one_in_postgresql_is_told_without_its_password(database: str, tmp_path: Path) -> None:
    assert old_database.refusal({"MA_DATABASE_URL": database}) == "", "it is empty"
    with psycopg.connect(database) as connection:
        connection.execute(TABLE)
        connection.execute(ROW.format(name=OF_BEFORE))
    (tmp_path / "url").write_text(f"{database}\n")
    told = old_database.refusal({"MA_DATABASE_URL_FILE": str(tmp_path / "url")})
    name = database.rpartition("/")[2]
    assert (
        told.startswith(f"The database {name} on ") and "./ma up --no-demo --adopt-broker --changed" in told
    )
    assert "@" not in told


@pytest.mark.parametrize(
    "url", ["", "sqlite:///no/where/db.sqlite3", "postgresql://nobody@127.0.0.1:1/none", "mysql://a/b"]
)
def test_what_does_not_answer_is_left_to_the_start(url: str) -> None:
    assert old_database.refusal({"MA_DATABASE_URL": url}) == ""


def test_one_of_today_is_not_refused(tmp_path: Path) -> None:
    assert (
        old_database.refusal(
            {"MA_DATABASE_URL": f"sqlite://{sqlite(tmp_path, OF_TODAY)}".replace(" % ", "%20%25%20")}
        )
        == ""
    )


@pytest.mark.process
def test_a_start_is_refused_with_the_same_words(tmp_path: Path) -> None:
    config = configuration.read({"MA_DATA": str(tmp_path)})
    manage.refuse_database_of_before(config, Layout(tmp_path))
    sqlite(tmp_path).rename(tmp_path / "db.sqlite3")
    with pytest.raises(DeployError) as refused:
        manage.refuse_database_of_before(config, Layout(tmp_path))
    told = old_database.refusal({"MA_DATABASE_URL": f"sqlite://{tmp_path / 'db.sqlite3'}"})
    assert str(refused.value) == told != ""


@pytest.mark.process
@pytest.mark.parametrize("command", [["migrate"], ["prepare", "database"]], ids=" ".join)
def test_nothing_migrates_it(command: list[str], tmp_path: Path) -> None:
    file = sqlite(tmp_path).rename(tmp_path / "db.sqlite3")
    before = file.read_bytes()
    done = subprocess.run(
        [sys.executable, "manage.py", *command], cwd=REPOSITORY,
        env=os.environ | {"MA_DATABASE_URL": f"sqlite://{file}"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"{file} was made by a version before 0.9.0")
    assert file.read_bytes() == before
