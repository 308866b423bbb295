"""What every test session has: an environment of its own, real services on demand, and no skipped test."""

import gc
import os
import shutil
from collections.abc import Generator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import django
import pytest
from django.db import connection
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deploy.services import postgres as postgres_program
from tests import costs, emptying, environment, markers, migrated, slow_calls, workers
from tests.services import artemis, child_processes, postgres, redis_server

__all__ = ["artemis", "child_processes", "postgres", "redis_server"]

environment.fill_in()
# No bound of time for an example: where other tests run beside it, any of them can be slow once.
settings.register_profile("ma", deadline=None, suppress_health_check=[HealthCheck.too_slow])
if settings.get_current_profile_name() != "mutants":
    settings.load_profile("ma")
# Not in pyproject.toml: pytest-django would load the settings before the line above.
os.environ["DJANGO_SETTINGS_MODULE"] = "ma_site.settings"

cluster: postgres_program.Cluster | None = None
seconds = costs.seconds_of_files()


def pytest_configure(config: pytest.Config) -> None:
    """Chooses the database, then sets Django up: pytest-django would not, the settings are named too late for
    it.

    PostgreSQL is started once. Each worker of pytest-xdist has a database of its own in it.
    """
    global cluster
    gc.disable()
    kind = costs.database()
    if kind not in ("sqlite", "postgresql"):
        raise pytest.UsageError(f"MA_TEST_DATABASE={kind!r}: sqlite or postgresql")
    environment.DATA.mkdir(parents=True, exist_ok=True)
    if kind == "postgresql":
        if (url := workers.given(config, "database")) is None:
            cluster = postgres_program.start()
            url = cluster.url()
        os.environ["MA_DATABASE_URL"] = url
    slow_calls.install()
    django.setup()
    emptying.install()
    config.pluginmanager.register(costs.Meter(), "costs")


@pytest.hookimpl(trylast=True)  # after the one that lets hypothesis begin
def pytest_sessionstart() -> None:
    """What hypothesis makes once for a clone and a Python would take seconds of the first test with it."""

    @settings(max_examples=1, database=None)
    @given(st.text(), st.integers())
    def fill_its_caches(_text: str, _number: int) -> None:
        pass

    fill_its_caches()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Of pytest-xdist, before a worker starts. All get the same: they must sort alike."""
    node.workerinput |= {"seconds": seconds, "database": cluster and cluster.url()}


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> workers.Scheduler:
    return workers.Scheduler(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """What is imported and collected stays to the end: the garbage collector need not visit it again and
    again."""
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Before pytest selects by marker."""
    markers.set_markers(items)
    if (known := workers.given(config, "seconds")) is not None:
        workers.arrange(items, known)


def pytest_unconfigure(config: pytest.Config) -> None:
    if cluster is not None:
        cluster.stop()
    shutil.rmtree(environment.DATA, ignore_errors=True)


@pytest.fixture(autouse=True)
def nothing_slow_in_a_transaction() -> Iterator[None]:
    """Of the product, in the processes of the tests."""
    slow_calls.take()
    yield
    assert not (found := slow_calls.take()), "\n".join(found)


def pytest_report_header(config: pytest.Config) -> str:
    return f"database: {costs.database()}"


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
    """What lies in the place of the database is a copy that was put there; the place goes with the
    session."""
    return True


@pytest.fixture(scope="session")
def migrating() -> Iterator[ExitStack]:
    """Holds what keeps other sessions waiting until the database is there."""
    with ExitStack() as held:
        yield held


@pytest.fixture(scope="session")
def was_migrated(django_db_modify_db_settings: None, migrating: ExitStack) -> bool:
    """Whether the session got a copy: the migrations take longer than most sessions."""
    migrating.enter_context(migrated.alone())
    settings = connection.settings_dict
    if connection.vendor == "sqlite":
        return migrated.put_file(Path(settings["TEST"]["NAME"]))
    return migrated.put_database(_url(connection.creation._get_test_db_name()))  # type: ignore[attr-defined]  # a private name


def _url(name: str) -> str:
    return os.environ["MA_DATABASE_URL"].rpartition("/")[0] + f"/{name}"


@pytest.fixture(scope="session")
def django_db_setup(
    was_migrated: bool, migrating: ExitStack, django_db_setup: Any, django_db_blocker: Any
) -> None:
    if not was_migrated:
        with django_db_blocker.unblock():
            connection.close()
        _keep()
    migrating.close()


def _keep() -> None:
    if connection.vendor == "sqlite":
        migrated.keep_file(Path(connection.settings_dict["NAME"]))
    else:
        migrated.keep_database(_url(connection.settings_dict["NAME"]))
