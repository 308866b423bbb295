"""The product on six hosts, from its packages: a site, two KMAs, a broker and its backup, and a host with
Redis and PostgreSQL. With an authority every connection is encrypted; without one none is."""

import json
import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deploy.config import REPOSITORY
from deploy.services import postgres, redis
from tests.network.hosts import Host, Network, network
from tests.network.pair import PORTS, Kind, Pair, until
from tests.tls import Authority

NAMES = ("site", "srv-1", "srv-2", "broker-1", "broker-2", "data")
SITE_PORT, REDIS_PORT, POSTGRESQL_PORT = 8000, 6379, 5432
ROLES = ("web", "worker", "beat", "feed")
AGENTS = "kma.samples.orders,kma.samples.scripted,kma.samples.standalone,mended_agents"


@dataclass
class Installation:
    net: Network
    pair: Pair
    programs: Path
    authority: Authority | None
    passwords: dict[str, str]
    tokens: dict[str, str]
    environ: dict[str, str]

    @property
    def scheme(self) -> str:
        return "https" if self.authority else "http"

    @property
    def facts(self) -> dict[str, Any]:
        """As `./ma env --json` says it of its own."""
        amqp, stomp = _addresses(self.authority is not None)
        return {
            "url": f"{self.scheme}://site:{SITE_PORT}/",
            "broker": {
                "amqp": amqp,
                "stomp": stomp,
                "accounts": {
                    user: {"user": user, "password": password} for user, password in self.passwords.items()
                },
            },
        }

    def job(self, name: str, messages: int, log: Path) -> "subprocess.Popen[bytes]":
        """`tests.network.job`, on the host of the site."""
        told = self.net.folder / "job.json"
        told.write_text(
            json.dumps(
                {
                    "facts": self.facts,
                    "token": self.tokens["admin"],
                    "authority": str(self.authority.certificate) if self.authority else "",
                    "data": str(self.net.folder / "truth"),
                }
            )
        )
        return self.net["site"].start(
            log, sys.executable, "-m", "tests.network.job", name, str(told), str(messages),
            cwd=REPOSITORY, environ=_bare(PATH=os.environ["PATH"], PYTHONPATH=str(REPOSITORY)),
        )  # fmt: skip


@contextmanager
def installed(folder: Path, programs: Path, *, tls: bool) -> Iterator[Installation]:
    """`programs`: the folder with `ma` and `kma`, installed from a release."""
    with network(folder, *NAMES) as net:
        authority = Authority.create(folder / "authority") if tls else None
        passwords = {user: secrets.token_urlsafe(16) for user in ("kma", "publisher", "ma-ops", "data")}
        accounts = {user: passwords[user] for user in ("kma", "publisher", "ma-ops")}
        pair = Pair.create(net, Kind.SHARED, ("broker-1", "broker-2"), accounts, authority=authority)
        pair.primary.start()
        pair.until_live(pair.primary)
        pair.backup.start()
        _start_redis(net["data"], passwords["data"], authority)
        with _postgresql(net["data"], passwords["data"], authority):
            pair.until_backed_up()
            environ = _of_site(net, passwords, authority)
            found = Installation(net, pair, programs, authority, accounts, {}, environ)
            _prepare_site(found)
            for role in ROLES:
                net["site"].start(folder / f"{role}.log", str(programs / "ma"), role, environ=environ)
            until("the site answers", lambda: _answers(found))
            for server in ("srv-1", "srv-2"):
                _start_kma(found, server)
            yield found
            net.end()


# -- data ----------------------------------------------------------------------------------------------------


def _start_redis(host: Host, password: str, authority: Authority | None) -> None:
    folder = host.network.folder / "redis"
    pair = authority.sign("redis", "DNS:data") if authority else None
    config = redis.write_config(folder, f"redis://:{password}@127.0.0.1:{REDIS_PORT}/0", pair)
    config.write_text(config.read_text().replace("bind 127.0.0.1", "bind 0.0.0.0"))
    host.start(folder / "log", "redis-server", str(config))


@contextmanager
def _postgresql(host: Host, password: str, authority: Authority | None) -> Iterator[None]:
    binaries = postgres._programs_or_problem()
    # Its own user has to reach it.
    folder = Path(f"/tmp/ma-six-{os.getpid()}-{secrets.token_hex(4)}")
    folder.mkdir()
    try:
        postgres._initialise(binaries, folder, password)
        data = folder / "data"
        settings = {"listen_addresses": "*", "port": str(POSTGRESQL_PORT), "max_connections": "100"}
        settings |= {"unix_socket_directories": str(folder)}
        kind = "host"
        if authority is not None:
            kind = "hostssl"
            settings |= {"ssl": "on"}
            for source, name in zip(
                authority.sign("data", "DNS:data"), ("server.crt", "server.key"), strict=True
            ):
                shutil.copy(source, data / name)
                (data / name).chmod(0o600)
                shutil.chown(data / name, data.stat().st_uid, data.stat().st_gid)
        (data / "pg_hba.conf").write_text(f"{kind} all all 0.0.0.0/0 scram-sha-256\n")
        command = [*postgres._as_owner(), str(binaries / "postgres"), "-D", str(data)]
        command += [f"--{name}={value}" for name, value in settings.items()]
        host.start(host.network.folder / "postgres.log", *command)
        ready = [str(binaries / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(POSTGRESQL_PORT)]
        until("PostgreSQL answers", lambda: host.run(*ready).returncode == 0)
        yield
    finally:
        host.network.end()
        shutil.rmtree(folder, ignore_errors=True)


# -- site and KMAs -------------------------------------------------------------------------------------------


def _addresses(tls: bool) -> tuple[str, str]:
    hosts = ("broker-1", "broker-2")
    amqp = ",".join(f"amqp{'s' if tls else ''}://{host}:{PORTS.amqp}" for host in hosts)
    return amqp, ",".join(f"{'stomps://' if tls else ''}{host}:{PORTS.stomp}" for host in hosts)


def _bare(**environ: str) -> dict[str, str]:
    """Of a host that knows nothing of a clone."""
    return {"PATH": os.defpath, "HOME": "/nonexistent", "LANG": "C.UTF-8", **environ}


def _of_site(net: Network, passwords: Mapping[str, str], authority: Authority | None) -> dict[str, str]:
    amqp, stomp = _addresses(authority is not None)
    data = net.folder / "site"
    data.mkdir()
    environ = {
        "MA_ENV_FILE": str(net.folder / "ma.env"), "MA_DATA": str(data), "MA_HOST": "0.0.0.0",
        "MA_PORT": str(SITE_PORT), "MA_SECRET_KEY": secrets.token_urlsafe(40), "MA_PIPELINE": "off",
        "MA_ALLOWED_HOSTS": "site", "MA_BROKER_USER": "ma-ops", "MA_BROKER_PASSWORD": passwords["ma-ops"],
        "MA_AMQP_URL": amqp, "MA_STOMP_ADDRESS": stomp,
    }  # fmt: skip
    (net.folder / "ma.env").write_text("")
    database = f"postgresql://ma:{passwords['data']}@data:{POSTGRESQL_PORT}/postgres"
    redis_url = f":{passwords['data']}@data:{REDIS_PORT}/0"
    if authority is None:
        environ |= {
            "MA_DATABASE_URL": f"{database}?sslmode=disable", "MA_REDIS_URL": f"redis://{redis_url}",
            "MA_BASE_URL": f"http://site:{SITE_PORT}", "MA_ALLOW_UNENCRYPTED": "broker,redis,database",
        }  # fmt: skip
    else:
        ca = str(authority.certificate)
        certificate, key = authority.sign("site", "DNS:site")
        environ |= {
            "MA_DATABASE_URL": f"{database}?sslmode=verify-full&sslrootcert={ca}",
            "MA_REDIS_URL": f"rediss://{redis_url}?ssl_ca_certs={ca}", "MA_BROKER_TLS_CA": ca,
            "MA_BASE_URL": f"https://site:{SITE_PORT}",
            "MA_TLS_CERT": str(certificate), "MA_TLS_KEY": str(key),
        }  # fmt: skip
    return _bare(**environ)


def _prepare_site(found: Installation) -> None:
    person = {"DJANGO_SUPERUSER_PASSWORD": secrets.token_urlsafe(16)}

    def ma(*arguments: str) -> str:
        done = subprocess.run(
            found.net["site"].command(str(found.programs / "ma"), *arguments),
            env=found.environ | person, capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, f"ma {' '.join(arguments)}: {done.stdout}\n{done.stderr}"
        return done.stdout

    ma("migrate")
    ma("collectstatic", "--noinput")
    ma("provision")
    ma("createsuperuser", "--noinput", "--username", "admin", "--email", "admin@example.org")
    found.tokens["admin"] = ma("create-api-token", "admin").split()[-1]
    for server in ("srv-1", "srv-2"):
        found.tokens[server] = ma("create-server", server).split()[-1]


def _answers(found: Installation) -> bool:
    probe = (
        "import ssl, sys, urllib.request\n"
        "context = ssl.create_default_context(cafile=sys.argv[2]) if sys.argv[2] else None\n"
        "urllib.request.urlopen(sys.argv[1] + 'readyz', context=context, timeout=5)\n"
    )
    ca = str(found.authority.certificate) if found.authority else ""
    return found.net["srv-1"].run(sys.executable, "-c", probe, found.facts["url"], ca).returncode == 0


def _start_kma(found: Installation, server: str) -> None:
    folder = found.net.folder / server
    folder.mkdir()
    modules = found.net.folder / "modules"
    modules.mkdir(exist_ok=True)
    shutil.copy(REPOSITORY / "tests" / "product" / "agents.py", modules / "mended_agents.py")
    amqp, _ = _addresses(found.authority is not None)
    environ = {
        "MA_URL": found.facts["url"], "KMA_SERVER": server, "KMA_TOKEN": found.tokens[server],
        "KMA_AMQP_URL": amqp, "KMA_BROKER_USER": "kma", "KMA_BROKER_PASSWORD": found.passwords["kma"],
        "KMA_DATA": str(folder), "KMA_AGENTS": AGENTS, "KMA_SAMPLES_ANYWHERE": "1",
        "PYTHONPATH": str(modules),
    }  # fmt: skip
    if found.authority is None:
        environ["KMA_ALLOW_UNENCRYPTED"] = "broker,site"
    else:
        environ |= dict.fromkeys(("KMA_BROKER_TLS_CA", "KMA_MA_TLS_CA"), str(found.authority.certificate))
    log = found.net.folder / f"{server}.log"
    found.net[server].start(log, str(found.programs / "kma"), environ=_bare(**environ), cwd=folder)
