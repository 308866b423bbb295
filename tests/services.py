"""Real services for tests, each started once per test session on free ports. None of them is ever skipped."""

import os
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from contract.encryption import SYSTEM, TlsFiles
from deploy.config import LOOPBACK, REPOSITORY
from deploy.installing import artemis_download
from deploy.services import artemis as artemis_program
from deploy.services import postgres as postgres_program
from deploy.services import redis
from deploy.services.artemis import BrokerPorts, BrokerTls
from deploy.services.ports import free_ports
from tests import prepared_artemis
from tests.tls import Authority

STOP_SECONDS = 30


def cache() -> Path:
    """Where downloads of the tests stay, so that a second run downloads nothing."""
    return Path(os.environ.get("MA_TEST_CACHE") or REPOSITORY / "var" / "test")


def pictures(module: str) -> Path:
    """Where a module of tests keeps what a browser showed. Each has its own folder: stages run beside each
    other."""
    return cache() / "pictures" / module.rpartition(".")[2].removeprefix("test_")


def artemis_distribution() -> Path:
    return artemis_download.ensure_unpacked(cache(), cache() / "log" / "install.log")


@dataclass(frozen=True)
class Account:
    user: str
    password: str


@dataclass
class ArtemisService:
    """A broker of our own making, with the accounts and rights of a real installation."""

    folder: Path
    ports: BrokerPorts
    accounts: dict[str, Account]
    classes: prepared_artemis.Classes
    authority: Authority | None = None
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @classmethod
    def create(
        cls, folder: Path, *, record: bool = False, authority: Authority | None = None
    ) -> "ArtemisService":
        """`record`: the classes that it has loaded make the starts of later brokers cheaper. `authority`: it
        speaks TLS only, with a certificate for loopback, and takes those of clients."""
        ports = BrokerPorts(*free_ports(3))
        accounts = {user: Account(user, secrets.token_urlsafe(16)) for user in ("kma", "publisher", "ma-ops")}
        passwords = {user: account.password for user, account in accounts.items()}
        program = artemis_distribution()
        tls = None
        if authority is not None:
            tls = BrokerTls(authority.pair("broker", f"IP:{LOOPBACK}"), authority.certificate)
        prepared_artemis.create_instance(program, folder, ports, passwords, tls)
        classes = prepared_artemis.Classes(program, folder)
        with (folder / "etc" / "artemis.profile").open("a") as profile:
            profile.write(classes.profile(record=record))
        if authority is not None:
            _take_certificates(folder / "etc", accounts)
        return cls(folder, ports, accounts, classes, authority)

    @property
    def kma(self) -> Account:
        return self.accounts["kma"]

    @property
    def publisher(self) -> Account:
        return self.accounts["publisher"]

    @property
    def ops(self) -> Account:
        return self.accounts["ma-ops"]

    @property
    def amqp_url(self) -> str:
        return f"amqp{'s' if self.authority else ''}://{LOOPBACK}:{self.ports.amqp}"

    @property
    def stomp_address(self) -> str:
        return f"{'stomps://' if self.authority else ''}{LOOPBACK}:{self.ports.stomp}"

    @property
    def trust(self) -> TlsFiles:
        return TlsFiles(str(self.authority.certificate)) if self.authority else SYSTEM

    @property
    def core_url(self) -> str:
        return f"tcp://{LOOPBACK}:{self.ports.core}"

    @property
    def log(self) -> Path:
        return self.folder.parent / f"{self.folder.name}.log"

    @property
    def pid(self) -> int:
        assert self.process is not None, "the broker is not running"
        return self.process.pid

    def start(self) -> None:
        """Returns when the broker answers."""
        self.process = artemis_program.run_artemis(self.folder, self.log)
        authority = self.authority.certificate if self.authority else None
        artemis_program.wait_until_ready(self.process, self.ports, self.log, authority)

    def stop(self) -> None:
        self._end(signal.SIGTERM)
        self.classes.keep()

    def kill(self) -> None:
        """As a crash of the machine would: no goodbye, nothing flushed."""
        self._end(signal.SIGKILL)

    def _end(self, number: signal.Signals) -> None:
        if self.process is None:
            return
        self.process.send_signal(number)
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process = None


LOGIN = """
activemq {
   org.apache.activemq.artemis.spi.core.security.jaas.TextFileCertificateLoginModule sufficient
       org.apache.activemq.jaas.textfiledn.user="cert-users.properties"
       org.apache.activemq.jaas.textfiledn.role="cert-roles.properties";
   org.apache.activemq.artemis.spi.core.security.jaas.PropertiesLoginModule sufficient
       org.apache.activemq.jaas.properties.user="artemis-users.properties"
       org.apache.activemq.jaas.properties.role="artemis-roles.properties";
};
"""


def _take_certificates(etc: Path, users: Iterable[str]) -> None:
    """Who shows a certificate of the name of a user is that user; others need a password as ever."""
    (etc / "login.config").write_text(LOGIN)
    (etc / "cert-users.properties").write_text("".join(f"{user} = CN={user}\n" for user in users))
    (etc / "cert-roles.properties").write_text("".join(f"{user} = {user}\n" for user in users))


@dataclass
class RedisService:
    url: str
    config: Path
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @classmethod
    def create(cls, folder: Path) -> "RedisService":
        url = f"redis://:{secrets.token_urlsafe(16)}@{LOOPBACK}:{free_ports(1)[0]}/0"
        return cls(url, redis.write_config(folder, url))

    def start(self) -> None:
        """Returns when Redis answers."""
        log = self.config.with_suffix(".log")
        self.process = redis.run_redis(self.config, log)
        deadline = time.monotonic() + STOP_SECONDS
        while not redis.redis_answers(self.url):
            assert time.monotonic() < deadline, f"Redis does not answer; see {log}"
            time.sleep(0.05)

    def stop(self) -> None:
        if self.process is not None:
            self.process.terminate()
            self.process.wait(STOP_SECONDS)
            self.process = None


@contextmanager
def throw_away_folder(name: str) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix=f"ma-{name}-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def running_artemis() -> Iterator[ArtemisService]:
    with throw_away_folder("artemis") as folder:
        service = ArtemisService.create(folder / "broker", record=True)
        service.start()
        try:
            yield service
        finally:
            service.stop()


@pytest.fixture(scope="session")
def artemis() -> Iterator[ArtemisService]:
    with running_artemis() as service:
        yield service


@pytest.fixture(scope="session")
def child_processes() -> None:
    """Asked for by fixtures that start processes or servers: tests/markers.py knows their tests by it."""


@pytest.fixture(scope="session")
def redis_server(child_processes: None) -> Iterator[RedisService]:
    with throw_away_folder("redis") as folder:
        service = RedisService.create(folder)
        service.start()
        yield service
        service.stop()


@pytest.fixture(scope="session")
def postgres(child_processes: None) -> Iterator[postgres_program.Cluster]:
    cluster = postgres_program.start()
    yield cluster
    cluster.stop()
