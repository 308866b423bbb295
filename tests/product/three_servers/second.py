"""A second process of what an installation has once: the site on another port, another beat."""

import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import requests

from deploy.config import LOOPBACK, REPOSITORY
from deploy.layout import Layout
from deploy.services.ports import free_ports
from tests.product.house import House


@contextmanager
def second_web(house: House) -> Iterator[int]:
    """The port of a second site with the same database."""
    [port] = free_ports(1)
    bind = f"{LOOPBACK}:{port}"
    command = (
        "gunicorn",
        "ma_site.wsgi",
        "--bind",
        bind,
        "--workers",
        "1",
        "--threads",
        "4",
        "--no-control-socket",
    )
    with _running(house, "web-2", command):
        house.until("the second site answers", lambda: _answers(f"http://{bind}/healthz/"))
        yield port


@contextmanager
def second_beat(house: House) -> Iterator[None]:
    """Another scheduler over the same rows. It asks for no lease: two that send are harmless all the same."""
    command = ("celery", "-A", "ma_site", "beat", "--pidfile=", "--scheduler", "celery.beat.Scheduler")
    with _running(house, "beat-2", command) as process:
        time.sleep(2)
        assert process.poll() is None, "the second beat runs beside the first"
        yield


def _answers(url: str) -> bool:
    try:
        return requests.get(url, timeout=5).status_code in (200, 503)
    except requests.RequestException:
        return False


@contextmanager
def _running(house: House, name: str, command: Sequence[str]) -> Iterator[subprocess.Popen[bytes]]:
    with Layout(house.data).log(f"test-{name}").open("ab") as log:
        process = subprocess.Popen(
            [str(REPOSITORY / ".venv" / "bin" / command[0]), *command[1:]],
            cwd=REPOSITORY,
            env=house.environ | house.facts["environ"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
