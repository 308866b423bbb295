"""`rediss://` is verified by every client: the site's Celery, its senders, health and doctor, and the KMA's
Celery."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from agents.site.components import ping
from deploy.config import LOOPBACK
from deploy.services.ports import free_ports
from tests import environment
from tests.kma.fakes import eventually
from tests.tls import Authority

pytestmark = pytest.mark.process

ROOT = Path(__file__).resolve().parents[2]
PASSWORD = "only-for-this-test"
# Sends a task with the application that the named module makes, and says whether it was taken.
SEND = """
import importlib, json, sys
app = importlib.import_module(sys.argv[1]).app
try:
    app.send_task("none.such", queue="tls", retry=False)
    print(json.dumps("sent"))
except Exception as error:
    print(json.dumps(f"{type(error).__name__}: {error}"))
"""


@dataclass
class Servers:
    """Of one authority; `wrong_name` has a certificate of another host."""

    authority: Authority
    other: Authority
    right_name: int
    wrong_name: int

    def url(self, port: int, authority: Path | None) -> str:
        known = f"?ssl_ca_certs={authority}" if authority is not None else ""
        return f"rediss://:{PASSWORD}@{LOOPBACK}:{port}/0{known}"


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    folder = tmp_path_factory.mktemp("tls")
    authority = Authority.create(folder / "house")
    found = Servers(authority, Authority.create(folder / "evil"), *free_ports(2))
    names = {found.right_name: f"IP:{LOOPBACK}", found.wrong_name: "DNS:evil.example"}
    processes = []
    for port, name in names.items():
        certificate, key = authority.sign(str(port), name)
        command = ["redis-server", "--port", "0", "--tls-port", str(port), "--bind", LOOPBACK, "--save", ""]
        command += [
            "--tls-cert-file",
            str(certificate),
            "--tls-key-file",
            str(key),
            "--tls-auth-clients",
            "no",
        ]
        command += ["--tls-ca-cert-file", str(authority.certificate), "--requirepass", PASSWORD]
        processes.append(subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL))
    eventually(lambda: _answers(found.url(found.right_name, authority.certificate)), "a Redis with TLS", 30)
    yield found
    for process in processes:
        process.terminate()
        process.wait(20)


def _answers(url: str) -> bool:
    try:
        ping(url)
    except OSError:
        return False
    return True


def sent(module: str, url: str, folder: Path) -> str:
    values = environment.values(folder) | {"MA_REDIS_URL": url, "KMA_REDIS_URL": url}
    values |= {"DJANGO_SETTINGS_MODULE": "ma_site.settings", "PYTHONPATH": str(ROOT)}
    environ = {
        name: value for name, value in os.environ.items() if not name.startswith(("MA_", "KMA_"))
    } | values
    done = subprocess.run(
        [sys.executable, "-c", SEND, module],
        env=environ,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout, done.stderr
    return str(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize("module", ["ma_site.celery", "kma.app"])
def test_the_right_authority_and_name_are_taken(servers: Servers, module: str, tmp_path: Path) -> None:
    url = servers.url(servers.right_name, servers.authority.certificate)

    assert sent(module, url, tmp_path) == "sent"
    ping(url)


@pytest.mark.parametrize("module", ["ma_site.celery", "kma.app"])
@pytest.mark.parametrize("wrong", ["an authority that nobody knows", "another authority", "another name"])
def test_a_server_that_proves_nothing_gets_no_password(
    servers: Servers, module: str, wrong: str, tmp_path: Path
) -> None:
    url = {
        "an authority that nobody knows": servers.url(servers.right_name, None),
        "another authority": servers.url(servers.right_name, servers.other.certificate),
        "another name": servers.url(servers.wrong_name, servers.authority.certificate),
    }[wrong]

    told = sent(module, url, tmp_path)

    assert "CERTIFICATE_VERIFY_FAILED" in told, told
    with pytest.raises(OSError, match="CERTIFICATE_VERIFY_FAILED"):
        ping(url)


@pytest.mark.parametrize(
    "parameters", ["ssl_cert_reqs=none", "ssl_check_hostname=false", "ssl_ca_certs=/none/such"]
)
@pytest.mark.parametrize("module", ["ma_site.celery", "kma.app"])
def test_what_would_switch_it_off_is_refused_at_the_start(
    parameters: str, module: str, tmp_path: Path
) -> None:
    values = environment.values(tmp_path)
    url = f"rediss://:{PASSWORD}@{LOOPBACK}:1/0?{parameters}"
    values |= {"MA_REDIS_URL": url, "KMA_REDIS_URL": url, "DJANGO_SETTINGS_MODULE": "ma_site.settings"}
    code = f"import {module} as it; it.app.conf.broker_url"

    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | values,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode != 0
    assert parameters.partition("=")[0] in done.stderr and PASSWORD not in done.stderr
