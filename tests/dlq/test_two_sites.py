"""One site on two hosts, with one database, one broker and one Redis: a host, the database's primary or Redis
is lost under load, and every message is where it belongs, once."""

import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import UUID, uuid4

import psycopg
import pytest
import requests

from broker.management import site_claim
from broker.port import Message, Settle
from contract.typed import Typed
from deploy.environment import parse_procfile
from deploy.services import postgres as postgres_program
from deploy.services.ports import free_ports
from deploy.services.postgres import Cluster
from tests import environment, migrated
from tests.dlq.forked import Forked
from tests.dlq.stage import DLA, Stage
from tests.kit.forwarder import Forwarder
from tests.kit.other_host import ROOT, Hosts, Process, hosts
from tests.services import RedisService
from tests.web.real_site import collect_static

pytestmark = pytest.mark.kill
ROLES = ("web", "worker", "beat", "feed")
COUNT, PER_SECOND = 600, 20


class Site:
    def __init__(self, folder: Path, stage: Stage, database: str, redis: str, hosts: Hosts) -> None:
        self.stage, self._hosts, self._folder = stage, hosts, folder
        ops = stage.account("ops", "amqp")
        self.environ = dict(os.environ) | environment.values(folder) | {
            "MA_AMQP_URL": ops.url,
            "MA_STOMP_ADDRESS": stage.service.stomp_address,
            "MA_BROKER_USER": ops.user,
            "MA_BROKER_PASSWORD": ops.password,
            "MA_DATABASE_URL": database,
            "MA_REDIS_URL": redis,
            "MA_HOST": "127.0.0.1",
            "DJANGO_SETTINGS_MODULE": "tests.web.real_site_settings",
        }  # fmt: skip
        self.environ["PATH"] = f"{ROOT / '.venv' / 'bin'}:{self.environ['PATH']}"
        self._forked = Forked(self.environ)
        collect_static(folder / "static")
        site = self.ask("from agents.site.broker_owner import site_id; print(site_id().hex)")
        site_claim.replace_owner(stage.management, UUID(site))

    def ask(self, code: str) -> str:
        done = self._forked.run("shell", "-c", code)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.strip().splitlines()[-1]

    def host(self, name: str) -> "Host":
        port = free_ports(1)[0]
        environ = self.environ | {"MA_PORT": str(port)}
        programs = {each.name: each.command for each in parse_procfile((ROOT / "Procfile").read_text())}
        found = {role: self._hosts.shell(name, programs[role], environ=environ) for role in ROLES}
        return Host(name, port, found)

    def setting(self, key: str) -> None:
        self.ask(
            "from tests.web import reports; from django.contrib.auth.models import User; "
            f"reports.setting('{key}', enabled=False); "
            "User.objects.get_or_create(username='operator'); print()"
        )

    def dead_letters(self, key: str, count: int, start: int = 0) -> list[str]:
        names = [f"{key}-{number:04}" for number in range(start, start + count)]
        messages = [Message(body=Typed("string", name), message_id=Typed("string", name)) for name in names]
        self.stage.publish(f"t.{key}", *messages)
        self.stage.consume(key, count, Settle.REJECT)
        return names

    def indexed(self, key: str) -> int:
        code = "from dlq.models import DeadLetter as D; "
        return int(self.ask(f"{code}print(D.objects.filter(setting_key='{key}').count())"))

    def replay(self, key: str) -> str:
        return self.ask(
            "from tests.dlq.jobs import begun; from agents.models import LaunchSetting as S; "
            "from django.contrib.auth.models import User; from dlq.replay.requests import Options; "
            f"job = begun(S.objects.get(key='{key}'), action='give_back', scope='all', "
            f"options=Options(per_second={PER_SECOND}), by=User.objects.get(username='operator')); "
            "print(job.pk)"
        )

    def job(self, pk: str) -> tuple[str, int]:
        """Its state, and how many letters it has given back."""
        code = "from dlq.models import ReplayJob as J, ReplayItem as I; "
        code += f"print(J.objects.get(pk='{pk}').state, "
        state, given = self.ask(f"{code}I.objects.filter(job='{pk}', state='given_back').count())").split()
        return state, int(given)

    def ids(self, queue: str, address: str) -> Counter[str]:
        return Counter(self.stage.ids(queue, address))


class Host:
    def __init__(self, name: str, port: int, processes: dict[str, Process]) -> None:
        self.name, self._port, self._processes = name, port, processes

    def kill(self) -> None:
        for process in self._processes.values():
            process.send(signal.SIGKILL)

    def page(self) -> int:
        url = f"http://127.0.0.1:{self._port}/healthz/"
        try:
            return requests.get(url, timeout=10, headers={"Host": "testserver"}).status_code
        except requests.RequestException:
            return 0

    def runs(self) -> None:
        until(lambda: self.page() == 200)

    def all_alive(self) -> bool:
        return all(process.poll() is None for process in self._processes.values())


def until(condition: Callable[[], object], seconds: float = 120) -> float:
    began = time.monotonic()
    while not condition():
        assert time.monotonic() < began + seconds
        time.sleep(0.3)
    return time.monotonic() - began


def fresh(cluster: Cluster) -> str:
    """The name of a database that is migrated."""
    name = f"sites_{uuid4().hex[:12]}"
    with psycopg.connect(cluster.url(), autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}" TEMPLATE template0')
    migrated.fill_database(cluster.url(name))
    return name


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Hosts]:
    with hosts(tmp_path) as found:
        yield found


class Load:
    """Messages die all the while."""

    def __init__(self, site: Site, key: str) -> None:
        self._site, self._key, self._ending = site, key, threading.Event()
        self.names: list[str] = []
        self._thread = threading.Thread(target=self._go_on, daemon=True)

    def __enter__(self) -> "Load":
        self._thread.start()
        return self

    def _go_on(self) -> None:
        while not self._ending.wait(0.2):
            self.names += self._site.dead_letters(self._key, 10, len(self.names))

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self._thread.join(60)


def everything_is_once_where_it_belongs(
    site: Site, replayed: list[str], key: str, load: Load, under: str
) -> None:
    assert site.ids(key, f"t.{key}") == Counter(replayed)
    assert site.ids(f"DLQ.{key}", DLA) == Counter()
    assert site.ids(f"DLQ.{under}", DLA) == Counter(load.names)
    assert site.indexed(under) == len(load.names) and site.indexed(key) == COUNT


def lose_under_load(site: Site, lose: Callable[[], None]) -> None:
    """A replay runs, and messages die, while `lose` takes something away."""
    key, under = site.stage.key(), site.stage.key("load")
    for each in (key, under):
        site.setting(each)
    names = site.dead_letters(key, COUNT)
    until(lambda: site.indexed(key) == COUNT)
    with Load(site, under) as load:
        job = site.replay(key)
        until(lambda: site.job(job)[1] > 3 * PER_SECOND)
        lose()
        until(lambda: site.job(job)[0] == "done")
    assert site.job(job) == ("done", COUNT)
    until(lambda: site.indexed(under) == len(load.names))
    assert site.ids(key, f"t.{key}") == Counter(names)
    assert site.ids(f"DLQ.{key}", DLA) == Counter()
    assert site.ids(f"DLQ.{under}", DLA) == Counter(load.names)
    assert site.indexed(under) == len(load.names) and site.indexed(key) == COUNT


def test_a_replay_goes_on_when_its_host_is_killed(
    postgres: Cluster, redis_server: RedisService, stage: Stage, tmp_path: Path, running: Hosts
) -> None:
    site = Site(tmp_path, stage, postgres.url(fresh(postgres)), redis_server.url, running)
    first = site.host("host-a")
    first.runs()
    second: list[Host] = []

    def lose() -> None:
        second.append(site.host("host-b"))
        second[0].runs()
        assert (first.page(), second[0].page()) == (200, 200)
        first.kill()

    lose_under_load(site, lose)
    assert second[0].all_alive() and second[0].page() == 200
    code = (
        "from console.models import Lease; print(*Lease.objects.order_by('name').values_list('name', 'host'))"
    )
    assert site.ask(code) == "('beat', 'host-b') ('feed', 'host-b')"


def test_a_standby_of_the_database_that_is_promoted_has_everything(
    redis_server: RedisService, stage: Stage, tmp_path: Path, running: Hosts
) -> None:
    primary = postgres_program.start(postgres_program.REPLICATED)
    standby = postgres_program.follow(primary)
    try:
        url = primary.url(fresh(primary)).replace(
            f":{primary.port}/", f":{primary.port},127.0.0.1:{standby.port}/"
        )
        site = Site(tmp_path, stage, url, redis_server.url, running)
        both = [site.host(name) for name in ("host-a", "host-b")]
        for host in both:
            host.runs()

        def lose() -> None:
            primary.kill()
            standby.promote()

        lose_under_load(site, lose)
        assert all(host.all_alive() for host in both)
        until(lambda: [host.page() for host in both] == [200, 200])
    finally:
        for cluster in (standby, primary):
            cluster.stop()


def test_an_empty_redis_in_the_place_of_the_other_is_enough(
    postgres: Cluster, stage: Stage, tmp_path: Path, running: Hosts
) -> None:
    old, new = (RedisService.create(tmp_path / name) for name in ("old", "new"))
    old.start()
    address = Forwarder(port_of(old))
    try:
        url = old.url.replace(f":{port_of(old)}/", f":{address.port}/")
        site = Site(tmp_path, stage, postgres.url(fresh(postgres)), url, running)
        both = [site.host(name) for name in ("host-a", "host-b")]
        for host in both:
            host.runs()

        def lose() -> None:
            assert old.process is not None
            old.process.kill()
            old.process.wait()
            address.lead(None)
            new.config.write_text(new.config.read_text().replace(password_of(new), password_of(old)))
            new.url = new.url.replace(password_of(new), password_of(old))
            new.start()
            address.lead(port_of(new))

        lose_under_load(site, lose)
        assert all(host.all_alive() for host in both)
    finally:
        address.close()
        new.stop()


def port_of(server: RedisService) -> int:
    return int(server.url.rpartition(":")[2].partition("/")[0])


def password_of(server: RedisService) -> str:
    return server.url.partition("://:")[2].partition("@")[0]
