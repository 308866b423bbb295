"""The site as the Procfile serves it: gunicorn with its processes and threads, on the database of the
tests."""

import os
import shutil
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import requests
from django.conf import settings
from django.core.management import call_command
from django.db import connection
from django.test import override_settings

from deploy.environment import parse_procfile
from deploy.services.ports import free_ports
from tests.tls import Authority

ROOT = Path(__file__).resolve().parents[2]
# Of a busy machine; whoever is held up by others waits for ever.
PATIENCE = 20.0


def database_url() -> str:
    known = connection.settings_dict
    if connection.vendor == "sqlite":
        return f"sqlite://{known['NAME']}"
    return f"postgresql://{known['USER']}:{known['PASSWORD']}@{known['HOST']}:{known['PORT']}/{known['NAME']}"


@dataclass
class Site:
    port: int
    folder: Path
    process: "subprocess.Popen[bytes]"
    authority: Authority | None = None

    def url(self, path: str) -> str:
        return f"{'https' if self.authority else 'http'}://127.0.0.1:{self.port}{path}"

    @property
    def verify(self) -> str | bool:
        return str(self.authority.certificate) if self.authority else True

    def connect(self, data: bytes = b"", *, receive: int = 0) -> socket.socket:
        """A client that has sent `data`; `receive` bounds what its side keeps of answers."""
        client = socket.socket()
        if receive:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive)
        client.settimeout(PATIENCE)
        client.connect(("127.0.0.1", self.port))
        if self.authority:
            context = ssl.create_default_context(cafile=self.authority.certificate)
            client = context.wrap_socket(client, server_hostname="127.0.0.1")
        client.sendall(data)
        return client

    def status(self, method: str, path: str, **more: Any) -> int | None:
        """None where no answer comes."""
        try:
            answer = requests.request(
                method, self.url(path), timeout=PATIENCE, allow_redirects=False, verify=self.verify, **more
            )
        except requests.RequestException:
            return None
        return answer.status_code


def answer_to(client: socket.socket) -> bytes:
    """All that comes until the connection ends or rests; nothing where it is cut."""
    found = b""
    try:
        while data := client.recv(65536):
            found += data
    except (TimeoutError, ConnectionError):
        pass
    return found


def head_of(client: socket.socket) -> bytes:
    """The first line of the answer, or nothing."""
    found = b""
    try:
        while b"\r\n" not in found and (data := client.recv(65536)):
            found += data
    except (TimeoutError, ConnectionError):
        pass
    return found.split(b"\r\n")[0]


def until(condition: Callable[[], object], seconds: float = 90) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def collect_static(folder: Path) -> None:
    """Here and not in a process of its own: it would take longer to start than to copy."""
    plain = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
    with override_settings(STATIC_ROOT=folder, STORAGES={**settings.STORAGES, "staticfiles": plain}):
        call_command("collectstatic", interactive=False, verbosity=0)


@contextmanager
def real_site(url: str = "", *, tls: bool = False, **environ: str) -> Iterator[Site]:
    folder = Path(mkdtemp(prefix="ma-site-"))
    authority = Authority.create(folder / "authority") if tls else None
    if authority is not None:
        certificate, key = authority.sign("site", "IP:127.0.0.1")
        environ |= {"MA_TLS_CERT": str(certificate), "MA_TLS_KEY": str(key)}
        environ["MA_BASE_URL"] = "https://testserver"
    (folder / "tmp").mkdir()
    port = free_ports(1)[0]
    command = next(
        each.command for each in parse_procfile((ROOT / "Procfile").read_text()) if each.name == "web"
    )
    given = {
        **os.environ,
        "MA_HOST": "127.0.0.1",
        "MA_PORT": str(port),
        "MA_DATABASE_URL": url or database_url(),
        "MA_DATA": str(folder),
        "DJANGO_SETTINGS_MODULE": "tests.web.real_site_settings",
        "TMPDIR": str(folder / "tmp"),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        **environ,
    }
    collect_static(folder / "static")
    log = folder / "log"
    with log.open("wb") as file:
        process = subprocess.Popen(
            ["sh", "-c", f"exec {command}"], cwd=ROOT, env=given, stdout=file, stderr=file
        )
    site = Site(port, folder, process, authority)
    try:
        until(lambda: site.status("GET", "/favicon.ico") == 302)
        until(lambda: log.read_bytes().count(b"Booting worker") >= 2)
        for _ in range(8):
            assert site.status("GET", "/favicon.ico") == 302
        yield site
    finally:
        process.terminate()
        process.wait(60)
        shutil.rmtree(folder, ignore_errors=True)
