"""A backup of PostgreSQL goes into an empty database, whole or not at all; the old one stays."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest

from deploy import config as configuration
from deploy import secret_files
from deploy.backups import create, database, restore
from deploy.backups.create import Wanted
from deploy.config import Config
from deploy.console import DeployError
from deploy.layout import Layout
from deploy.services.postgres import Cluster

pytestmark = pytest.mark.process

MADE = (
    "CREATE TABLE django_migrations (id serial, app text, name text)",
    "INSERT INTO django_migrations (app, name) VALUES ('agents', '0001_initial')",
    "CREATE TABLE agents_siteidentity (uuid uuid)",
    "INSERT INTO agents_siteidentity VALUES (gen_random_uuid())",
    "CREATE TABLE letters (id serial PRIMARY KEY, body bytea)",
    r"INSERT INTO letters (body) SELECT '\x00ff'::bytea FROM generate_series(1, 1000)",
)


@pytest.fixture
def urls(postgres: Cluster) -> Iterator[list[str]]:
    """One with a site, and an empty one."""
    names = [f"backup_{uuid4().hex[:12]}" for _ in range(2)]
    with psycopg.connect(postgres.url("postgres"), autocommit=True) as server:
        for name in names:
            server.execute(f"CREATE DATABASE {name}")
        with psycopg.connect(postgres.url(names[0])) as site:
            for statement in MADE:
                site.execute(statement)
        yield [postgres.url(name) for name in names]
        for name in names:
            server.execute(f"DROP DATABASE {name} WITH (FORCE)")


def of(folder: Path, url: str) -> Config:
    config = configuration.read({"MA_DATA": str(folder), "MA_DATABASE_URL": url})
    Layout(config.data).make_folders()
    secret_files.ensure_all(config, Layout(config.data))
    return config


def never() -> AbstractContextManager[None]:
    pytest.fail("nothing runs that had to be stopped")


def back_up(config: Config, target: Path) -> Path:
    wanted = Wanted(target, "", messages=False)
    return create.create(config, Layout(config.data), wanted, never, lambda text: None)[0]


def put_back(config: Config, backup: Path) -> None:
    restore.apply(config, Layout(config.data), backup, "", whole=False, say=lambda text: None)


def letters(url: str) -> int:
    with psycopg.connect(url) as site:
        (count,) = site.execute("SELECT count(*) FROM letters").fetchone() or (0,)
    return int(count)


def test_it_goes_into_an_empty_database_and_nowhere_else(urls: list[str], tmp_path: Path) -> None:
    old, new = urls
    config = of(tmp_path / "data", old)
    folder = back_up(config, tmp_path / "target")
    assert restore.check(folder).manifest.migrations == ("agents.0001_initial",)
    with psycopg.connect(old) as site:
        site.execute("DELETE FROM letters WHERE id > 10")

    with pytest.raises(DeployError, match="has 3 tables: nothing was changed") as refused:
        put_back(config, folder)
    assert "@" not in str(refused.value), "no password"
    put_back(of(tmp_path / "data", new), folder)
    assert (letters(old), letters(new)) == (10, 1000)
    with psycopg.connect(new) as site:
        row = site.execute("INSERT INTO letters (body) VALUES ('') RETURNING id").fetchone()
    assert row == (1001,), "numbers go on"


def test_a_dump_that_was_cut_off_is_found(urls: list[str], tmp_path: Path) -> None:
    folder = back_up(of(tmp_path / "data", urls[0]), tmp_path / "target")
    dump = folder / database.FILES[database.POSTGRESQL]
    dump.write_bytes(dump.read_bytes()[:200])
    with pytest.raises(DeployError, match="was cut off or changed"):
        restore.check(folder)
    assert database.problem_of(database.POSTGRESQL, dump) != "", "nor is it readable"


def test_a_database_that_does_not_answer_makes_no_backup(urls: list[str], tmp_path: Path) -> None:
    config = of(tmp_path / "data", urls[0])
    away = replace(config, handed_on={"MA_DATABASE_URL": "postgresql://ma:secret@127.0.0.1:1/site"})
    with pytest.raises(DeployError, match=r"the database 127\.0\.0\.1/site does not answer") as refused:
        back_up(away, tmp_path / "target")
    assert "secret" not in str(refused.value)
    assert list((tmp_path / "target").iterdir()) == []
