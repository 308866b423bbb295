"""Two hosts run beat for one site: one of them sends, and the other goes on when it is gone."""

import json
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
import redis

from console.leases import rules
from contract import redis_url
from deploy.services.postgres import Cluster
from tests import environment, migrated
from tests.kit.forwarder import Forwarder
from tests.kit.other_host import Hosts, Process, hosts
from tests.services import RedisService

pytestmark = pytest.mark.kill
LENGTH = rules.LEASE.total_seconds()
BEAT = ("-m", "celery", "-A", "ma_site", "beat", "--pidfile=")


class Site:
    """One database, one Redis that nobody takes tasks from."""

    def __init__(self, folder: Path, server: RedisService, url: str, hosts: Hosts) -> None:
        self._hosts = hosts
        self.environ = dict(os.environ) | environment.values(folder) | {
            "MA_DATABASE_URL": url,
            "MA_REDIS_URL": server.url,
            "DJANGO_SETTINGS_MODULE": "ma_site.settings",
        }  # fmt: skip
        self._redis = redis.Redis.from_url(redis_url.parse(server.url).url)
        self._redis.delete("ma")

    def beat(self, host: str, **more: str) -> Process:
        """`more`: what this host has in its environment, and the other has not."""
        return self._hosts.python(host, *BEAT, environ=self.environ | more)

    def sent(self) -> list[dict[str, Any]]:
        """The headers of all tasks, in the order in which they were sent."""
        waiting: Any = self._redis.lrange("ma", 0, -1)
        return [json.loads(each)["headers"] for each in reversed(waiting)]

    def senders(self) -> list[str]:
        """The hosts, in the order in which they began to send."""
        return [host for host, _tasks in groupby(task["origin"].rpartition("@")[2] for task in self.sent())]

    def sends(self, host: str) -> bool:
        return self.senders()[-1:] == [host]


def until(condition: Callable[[], object], seconds: float = 90) -> float:
    """How long it took."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() < began + seconds
        time.sleep(0.1)
    return time.monotonic() - began


@pytest.fixture(params=["sqlite", "postgresql"])
def site(request: pytest.FixtureRequest, redis_server: RedisService, tmp_path: Path) -> Iterator[Site]:
    url = (
        migrated.make_file(tmp_path / "db.sqlite3")
        if request.param == "sqlite"
        else fresh(request.getfixturevalue("postgres"))
    )
    with hosts(tmp_path) as found:
        yield Site(tmp_path, redis_server, url, found)


def fresh(cluster: Cluster) -> str:
    """A database that is migrated, in that server."""
    name = f"beats_{uuid4().hex[:12]}"
    with psycopg.connect(cluster.url(), autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}" TEMPLATE template0')
    migrated.fill_database(cluster.url(name))
    return cluster.url(name)


def two_beats(site: Site) -> tuple[Process, Process]:
    first = site.beat("host-a")
    until(lambda: site.sends("host-a"))
    second = site.beat("host-b")
    until(lambda: "this process waits" in second.said())
    return first, second


def test_the_second_sends_when_the_first_was_killed_and_never_beside_it(site: Site) -> None:
    first, _second = two_beats(site)
    before = len(site.sent())
    until(lambda: len(site.sent()) > before + 10)
    assert site.senders() == ["host-a"]
    first.kill()
    took = until(lambda: site.sends("host-b"))
    assert took / LENGTH < 2
    assert site.senders() == ["host-a", "host-b"]


def test_one_that_slept_longer_than_its_lease_sends_nothing(site: Site) -> None:
    first, second = two_beats(site)
    first.send(signal.SIGSTOP)
    until(lambda: site.sends("host-b"))
    first.send(signal.SIGCONT)
    until(lambda: "lease lost" in first.said())
    before = len(site.sent())
    until(lambda: len(site.sent()) > before + 10)
    assert site.senders() == ["host-a", "host-b"]
    second.end()
    took = until(lambda: site.sends("host-a"))
    assert took / LENGTH < 1, "a lease that was left need not run out"


def test_one_that_is_cut_off_from_the_database_stops_before_the_other_begins(
    postgres: Cluster, redis_server: RedisService, tmp_path: Path
) -> None:
    """Redis takes what it sends all the while."""
    url, way = fresh(postgres), Forwarder(postgres.port)
    with hosts(tmp_path) as found:
        site = Site(tmp_path, redis_server, url, found)
        own = url.replace(f":{postgres.port}/", f":{way.port}/")
        first = site.beat("host-a", MA_DATABASE_URL=own)
        until(lambda: site.sends("host-a"))
        second = site.beat("host-b")
        until(lambda: "this process waits" in second.said())
        way.lead(None)
        took = until(lambda: site.sends("host-b"))
        assert took / LENGTH < 2
        before = len(site.sent())
        until(lambda: len(site.sent()) > before + 10)
        way.lead(postgres.port)
        until(lambda: "lease lost" in first.said())
        assert site.senders() == ["host-a", "host-b"]
        way.close()


def test_a_task_expires_when_its_next_one_is_due(site: Site) -> None:
    site.beat("host-a")
    until(lambda: len(site.sent()) > 10)
    (task, *_) = [each for each in site.sent() if each["task"] == "agents.watch_drains"]
    left = datetime.fromisoformat(task["expires"]).timestamp() - time.time()
    assert left < 2 and task["origin"].endswith("@host-a")


def test_one_that_waits_tells_its_service_manager_that_it_is_well(site: Site, tmp_path: Path) -> None:
    """It sends no task, which is the work of the other one."""
    site.beat("host-a")
    until(lambda: site.sends("host-a"))
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(60)
        waiting = site.beat("host-b", NOTIFY_SOCKET=str(tmp_path / "notify"))
        until(lambda: "this process waits" in waiting.said())
        while manager.recv(64) != b"READY=1":
            pass
        assert [manager.recv(64) for _ in range(3)] == [b"WATCHDOG=1"] * 3
    assert site.senders() == ["host-a"]
