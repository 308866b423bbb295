"""An installation of its own for a bench: `./ma` in a throw-away folder, on free ports, and its REST
interface."""

import json
import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import requests

from broker.port import Account, Message, Outgoing
from broker.stomp.client import StompPublisher
from contract.typed import Typed
from deploy.config import REPOSITORY
from deploy.layout import Layout
from deploy.processes.runner import Runner
from deploy.services.ports import free_ports

PORTS = ("MA_PORT", "MA_AMQP_PORT", "MA_STOMP_PORT", "MA_CORE_PORT", "MA_REDIS_PORT")
PATIENCE = 90.0  # seconds for anything that should happen soon


class Installation:
    """`servers` are the names of its KMAs."""

    def __init__(self, data: Path, servers: Sequence[str], agents: str) -> None:
        ports = dict(zip(PORTS, map(str, free_ports(len(PORTS))), strict=True))
        own = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("MA_", "KMA_", "DJANGO_"))
        }
        own |= {"MA_DATA": str(data), "MA_SERVERS": ",".join(servers), "KMA_AGENTS": agents}
        # What is measured has the machine for itself.
        own |= {"KMA_SAMPLES_ANYWHERE": "1", "MA_PIPELINE": "off"}
        self._environ = own | ports | {"DJANGO_SUPERUSER_PASSWORD": secrets.token_urlsafe(16)}
        self.runner = Runner(Layout(data))
        self._facts: dict[str, Any] = {}
        self._session = requests.Session()

    def up(self) -> None:
        self._ma("up", "--detach", "--no-demo")
        self._facts = json.loads(self._ma("env", "--json"))
        self._manage("createsuperuser", "--noinput", "--username", "bench", "--email", "bench@example.org")
        token = self._manage("create_api_token", "bench").split()[-1]
        self._session.headers["Authorization"] = f"Bearer {token}"

    def down(self) -> None:
        self._ma("down")

    def call(self, method: str, path: str, body: Any = None) -> Any:
        answer = self._session.request(
            method, f"{self._facts['url'].rstrip('/')}/api/v1/{path}", json=body, timeout=30
        )
        if not answer.ok:
            raise RuntimeError(f"{method} {path}: {answer.status_code} {answer.text[:500]}")
        return answer.json() if answer.content else None

    def publisher(self) -> StompPublisher:
        broker = self._facts["broker"]
        known = broker["accounts"]["publisher"]
        return StompPublisher(Account(broker["stomp"], known["user"], known["password"]))

    def _ma(self, *arguments: str) -> str:
        return self._done([str(REPOSITORY / "ma"), *arguments], self._environ)

    def _manage(self, *arguments: str) -> str:
        return self._done([str(REPOSITORY / "manage.py"), *arguments], self._environ | self._facts["environ"])

    @staticmethod
    def _done(command: Sequence[str], environ: dict[str, str]) -> str:
        done = subprocess.run(
            [sys.executable, *command], env=environ, text=True, capture_output=True, check=False
        )
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
        return done.stdout


@contextmanager
def throw_away(servers: Sequence[str], agents: str) -> Iterator[Installation]:
    with tempfile.TemporaryDirectory(prefix="bench-ma-") as name:
        installation = Installation(Path(name), servers, agents)
        try:
            installation.up()
            yield installation
        finally:
            installation.down()


def until(what: str, true: Callable[[], bool], seconds: float = PATIENCE) -> None:
    """Raises RuntimeError when it does not become true in time."""
    deadline = time.monotonic() + seconds
    while not true():
        if time.monotonic() > deadline:
            raise RuntimeError(f"waited {seconds:.0f} s in vain: {what}")
        time.sleep(0.1)


def text_messages(address: str, number: int) -> list[Outgoing]:
    return [Outgoing(address, Message(body=Typed("string", "{}"))) for _ in range(number)]
