"""Two hosts follow the dead letters of one site, one at a time: nothing is lost, nothing is in the index
twice, and the second goes on when the first is gone."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import UUID, uuid4

import psycopg
import pytest

from broker.management import site_claim
from broker.port import Message, Settle
from console.jobs import crash
from console.leases import rules
from contract.typed import Typed
from deploy.services.postgres import Cluster
from tests import environment, migrated
from tests.dlq.forked import Forked
from tests.dlq.stage import Stage
from tests.kit.forwarder import Forwarder
from tests.kit.other_host import Hosts, Process, hosts

pytestmark = pytest.mark.kill
LENGTH = rules.LEASE.total_seconds()


class Site:
    """One database and one broker; `url` is where the database is for a host."""

    def __init__(self, folder: Path, stage: Stage, url: str, hosts: Hosts) -> None:
        self.url, self.stage, self._hosts = url, stage, hosts
        ops = stage.account("ops", "amqp")
        self.environ = dict(os.environ) | environment.values(folder) | {
            "MA_AMQP_URL": ops.url,
            "MA_STOMP_ADDRESS": stage.service.stomp_address,
            "MA_BROKER_USER": ops.user,
            "MA_BROKER_PASSWORD": ops.password,
            "MA_DATABASE_URL": url,
            "DJANGO_SETTINGS_MODULE": "ma_site.settings",
        }  # fmt: skip
        self._forked = Forked(self.environ)
        site = self.ask("from agents.site.broker_owner import site_id; print(site_id().hex)")
        site_claim.replace_owner(stage.management, UUID(site))

    def ask(self, code: str) -> str:
        done = self._forked.run("shell", "-c", code)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.strip().splitlines()[-1]

    def feed(self, host: str, url: str = "", **more: str) -> Process:
        environ = self.environ | {"MA_DATABASE_URL": url or self.url} | more
        return self._hosts.python(host, "manage.py", "follow_dead_letters", environ=environ)

    def holder(self) -> str:
        code = "from console.models import Lease; print('host', *Lease.objects.filter(name='feed')"
        return (
            self.ask(f"{code}.exclude(holder=None).values_list('host', flat=True))")
            .removeprefix("host")
            .strip()
        )

    def indexed(self, key: str) -> int:
        code = "from dlq.models import DeadLetter as D; "
        return int(self.ask(f"{code}print(D.objects.filter(setting_key='{key}').count())"))

    def kill_messages(self, key: str, count: int) -> None:
        bodies = [Message(body=Typed("string", f"body {n}")) for n in range(count)]
        self.stage.publish(f"t.{key}", *bodies)
        self.stage.consume(key, count, Settle.REJECT)

    def all_indexed_once(self, key: str, count: int) -> None:
        """The broker has as many as the index, and the feed has no more."""
        until(lambda: self.indexed(key) == count and not self.stage.count("DLQ.feed"))
        assert self.stage.count(f"DLQ.{key}") == count


def until(condition: Callable[[], object], seconds: float = 90) -> float:
    """How long it took."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() < began + seconds
        time.sleep(0.2)
    return time.monotonic() - began


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return migrated.make_file(tmp_path / "db.sqlite3")
    return fresh(request.getfixturevalue("postgres"))


def fresh(cluster: Cluster) -> str:
    """A database that is migrated, in that server."""
    name = f"hosts_{uuid4().hex[:12]}"
    with psycopg.connect(cluster.url(), autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}" TEMPLATE template0')
    migrated.fill_database(cluster.url(name))
    return cluster.url(name)


@pytest.fixture
def site(database: str, stage: Stage, tmp_path: Path) -> Iterator[Site]:
    with hosts(tmp_path) as found:
        yield Site(tmp_path, stage, database, found)


def two_feeds(site: Site) -> tuple[Process, Process]:
    first = site.feed("host-a")
    until(lambda: site.holder() == "host-a")
    second = site.feed("host-b")
    until(lambda: waits(site))
    return first, second


def waits(site: Site) -> bool:
    code = "from console.models import Lease; print(Lease.objects.get(name='feed').standby_host)"
    return site.ask(code) == "host-b"


def test_the_second_takes_over_from_one_that_was_killed(site: Site) -> None:
    key = site.stage.key()
    first, second = two_feeds(site)
    site.kill_messages(key, 100)
    site.all_indexed_once(key, 100)
    assert "dead letters indexed" not in second.said()
    first.kill()
    site.kill_messages(key, 50)
    took = until(lambda: site.holder() == "host-b")
    assert took / LENGTH < 2
    site.all_indexed_once(key, 150)


def test_what_a_killed_feed_had_stored_and_not_accepted_is_one_row(site: Site) -> None:
    place = "feed: stored, not accepted"
    key = site.stage.key()
    first = site.feed("host-a", **{crash.ASKED: place, crash.ALLOWED: "1"})
    until(lambda: site.holder() == "host-a")
    second = site.feed("host-b")
    until(lambda: waits(site))
    site.kill_messages(key, 30)
    until(lambda: first.poll() is not None)
    until(lambda: site.holder() == "host-b")
    site.all_indexed_once(key, 30)
    second.end()


def test_one_that_slept_longer_than_its_lease_stands_by(site: Site) -> None:
    key = site.stage.key()
    first, second = two_feeds(site)
    first.send(signal.SIGSTOP)
    site.kill_messages(key, 40)
    until(lambda: site.holder() == "host-b")
    before = first.said()
    first.send(signal.SIGCONT)
    site.all_indexed_once(key, 40)
    site.kill_messages(key, 40)
    site.all_indexed_once(key, 80)
    until(lambda: "lease lost" in first.said())
    assert "dead letters indexed" not in first.said().removeprefix(before)
    assert site.holder() == "host-b"
    second.end()
    took = until(lambda: site.holder() == "host-a")
    assert took / LENGTH < 1, "a lease that was left need not run out"


def test_one_whose_database_hangs_stops_and_the_other_goes_on(
    postgres: Cluster, stage: Stage, tmp_path: Path
) -> None:
    key, url = stage.key(), fresh(postgres)
    cut = Forwarder(postgres.port)
    with hosts(tmp_path) as found:
        site = Site(tmp_path, stage, url, found)
        first = site.feed("host-a", url.replace(f":{postgres.port}/", f":{cut.port}/"))
        until(lambda: site.holder() == "host-a")
        site.feed("host-b")
        until(lambda: waits(site))
        cut.hang()
        took = until(lambda: site.holder() == "host-b")
        assert took / LENGTH < 2
        site.kill_messages(key, 40)
        cut.lead(postgres.port)
        site.all_indexed_once(key, 40)
        until(lambda: "stands by" in first.said())
        cut.close()
