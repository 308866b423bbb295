"""What every test session has: an environment of its own, real services on demand, and no skipped test."""

import os
import shutil
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import django
import pytest
from django.db import connection

from deploy import postgres as postgres_program
from tests import environment, migrated, slow_calls
from tests.costs import Meter
from tests.services import artemis, postgres, redis_server

__all__ = ["artemis", "postgres", "redis_server"]

environment.fill_in()
# Not in pyproject.toml: pytest-django would load the settings before the line above.
os.environ["DJANGO_SETTINGS_MODULE"] = "ma_site.settings"

database: postgres_program.Cluster | None = None


def pytest_configure(config: pytest.Config) -> None:
    """Chooses the database, then sets Django up: pytest-django would not, the settings are named too late for it."""
    global database
    kind = os.environ.get("MA_TEST_DATABASE", "sqlite")
    if kind not in ("sqlite", "postgresql"):
        raise pytest.UsageError(f"MA_TEST_DATABASE={kind!r}: sqlite or postgresql")
    environment.DATA.mkdir(parents=True, exist_ok=True)
    if kind == "postgresql":
        database = postgres_program.start()
        os.environ["MA_DATABASE_URL"] = database.url()
    slow_calls.install()
    django.setup()
    config.pluginmanager.register(Meter(), "costs")


def pytest_unconfigure(config: pytest.Config) -> None:
    if database is not None:
        database.stop()
    shutil.rmtree(environment.DATA, ignore_errors=True)


@pytest.fixture(autouse=True)
def nothing_slow_in_a_transaction() -> Iterator[None]:
    """Of the product, in the processes of the tests."""
    slow_calls.take()
    yield
    assert not (found := slow_calls.take()), "\n".join(found)


def pytest_report_header(config: pytest.Config) -> str:
    return f"database: {os.environ.get('MA_TEST_DATABASE', 'sqlite')}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A skipped test looks like a passed one in a long output: here it fails."""
    report = yield
    if report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped: install what it needs, or delete it"
    return report


@pytest.fixture(scope="session")
def django_db_keepdb() -> bool:
    """What lies in the place of the database is a copy that was put there; the place goes with the session."""
    return True


@pytest.fixture(scope="session")
def was_migrated() -> bool:
    """Whether the session got a copy: the migrations take longer than most sessions."""
    settings = connection.settings_dict
    if database is None:
        return migrated.put_file(Path(settings["TEST"]["NAME"]))
    return migrated.put_database(database.url(connection.creation._get_test_db_name()))


@pytest.fixture(scope="session")
def django_db_setup(was_migrated: bool, django_db_setup: Any, django_db_blocker: Any) -> None:
    if was_migrated:
        return
    with django_db_blocker.unblock():
        connection.close()
    if database is None:
        migrated.keep_file(Path(connection.settings_dict["NAME"]))
    else:
        migrated.keep_database(database.url(connection.settings_dict["NAME"]))
