"""Our own processes on a database of their own, of the kind that the tests run on: to be killed, and to go on
where they were killed."""

import os
import secrets
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import UUID

import psycopg

from broker.management import site_claim
from console.jobs import crash
from tests import environment, migrated
from tests.dlq.forked import Forked
from tests.dlq.stage import Stage

ROOT = Path(__file__).resolve().parents[2]
_migrated: "File | Cluster | None" = None
_site: UUID | None = None


class File:
    """Databases are files; the one that was migrated is kept as it was then."""

    def __init__(self, folder: Path) -> None:
        self.url = f"sqlite://{folder / 'db.sqlite3'}"
        self._file = folder / "db.sqlite3"
        self._content = b""

    def put(self) -> None:
        migrated.put_file(self._file)

    def keep(self) -> None:
        self._content = self._file.read_bytes()

    def copy(self, folder: Path) -> str:
        copied = File(folder)
        copied._file.write_bytes(self._content)
        return copied.url


class Cluster:
    """Databases of the tests' own PostgreSQL; the one that was migrated is what others are made from."""

    def __init__(self) -> None:
        self._server = os.environ["MA_DATABASE_URL"]
        self._name = ""
        self.url = self._create("template0")

    def put(self) -> None:
        migrated.put_database(self.url)

    def keep(self) -> None:
        self._name = self.url.rpartition("/")[2]

    def copy(self, folder: Path) -> str:
        return self._create(self._name)

    def _create(self, template: str) -> str:
        name = f"own_{secrets.token_hex(6)}"
        with psycopg.connect(self._server, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        return f"{self._server.rpartition('/')[0]}/{name}"


class Processes:
    def __init__(self, folder: Path, stage: Stage) -> None:
        ops = stage.account("ops", "amqp")
        mine = {
            "MA_AMQP_URL": ops.url,
            "MA_STOMP_ADDRESS": stage.service.stomp_address,
            "MA_BROKER_USER": ops.user,
            "MA_BROKER_PASSWORD": ops.password,
            "MA_DATA": str(folder),
            "DJANGO_SETTINGS_MODULE": "ma_site.settings",
        }
        self.stage = stage
        self.environ = dict(os.environ) | environment.VALUES | mine
        self.environ["MA_DATABASE_URL"] = self._database(folder)
        self._forked = Forked(self.environ)
        # All their databases are copies of one, so they are one site, and tests share their broker.
        assert _site is not None
        site_claim.replace_owner(stage.management, _site)

    def _database(self, folder: Path) -> str:
        """Migrated once per session: it takes seconds."""
        global _migrated, _site
        if _migrated is None:
            made = File(folder) if os.environ["MA_DATABASE_URL"].startswith("sqlite") else Cluster()
            self.environ["MA_DATABASE_URL"] = made.url
            made.put()
            begun = Forked(self.environ)
            _done(begun.run("migrate", "--verbosity", "0"))
            code = "from agents.site.broker_owner import site_id; print(site_id())"
            _site = UUID(_done(begun.run("shell", "-c", code)).splitlines()[-1])
            made.keep()
            _migrated = made
        return _migrated.copy(folder)

    def manage(self, *arguments: str) -> str:
        return _done(self._forked.run(*arguments))

    def python(self, code: str) -> str:
        """What `code` prints, with Django set up."""
        return self.manage("shell", "-c", code).strip()

    def dies(self, code: str) -> None:
        """Runs `code`, which kills its own process."""
        done = self._forked.run("shell", "-c", code)
        assert done.returncode == -signal.SIGKILL, done.stdout + done.stderr

    def crashes(self, place: str, *arguments: str) -> None:
        """Runs a command, which dies at that place."""
        done = self._forked.run(*arguments, **{crash.ASKED: place, crash.ALLOWED: "1"})
        assert done.returncode == crash.EXIT_CODE, done.stdout + done.stderr

    @contextmanager
    def feed(self) -> Iterator[None]:
        """The feed's process runs meanwhile."""
        with self._forked.running("follow_dead_letters"):
            yield

    def follow_feed(self) -> None:
        """The feed's process, until the broker has nothing more for it."""
        with self.feed():
            deadline = time.monotonic() + 30
            while self.stage.count("DLQ.feed") and time.monotonic() < deadline:
                time.sleep(0.2)

    def letters(self, key: str) -> int:
        code = (
            f"from dlq.models import DeadLetter; "
            f"print(DeadLetter.objects.filter(setting_key='{key}').count())"
        )
        return int(self.python(code).splitlines()[-1])


def _done(process: "subprocess.CompletedProcess[str]") -> str:
    assert process.returncode == 0, process.stdout + process.stderr
    return process.stdout
