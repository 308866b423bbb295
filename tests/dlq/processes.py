"""Our own processes on a SQLite file of their own: to be killed, and to go on where they were killed."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests import environment
from tests.dlq.stage import Stage

ROOT = Path(__file__).resolve().parents[2]
_migrated = b""


class Processes:
    def __init__(self, folder: Path, stage: Stage) -> None:
        ops = stage.account("ops", "amqp")
        mine = {
            "MA_DATABASE_URL": f"sqlite://{folder / 'db.sqlite3'}",
            "MA_AMQP_URL": ops.url,
            "MA_STOMP_ADDRESS": stage.service.stomp_address,
            "MA_BROKER_USER": ops.user,
            "MA_BROKER_PASSWORD": ops.password,
            "MA_DATA": str(folder),
            "DJANGO_SETTINGS_MODULE": "ma_site.settings",
        }
        self.stage = stage
        self.environ = dict(os.environ) | environment.VALUES | mine
        self._migrate(folder / "db.sqlite3")

    def _migrate(self, file: Path) -> None:
        """Once per session: it takes seconds."""
        global _migrated
        if not _migrated:
            self.manage("migrate", "--verbosity", "0")
            _migrated = file.read_bytes()
        file.write_bytes(_migrated)

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, str(ROOT / "manage.py"), *arguments]

    def manage(self, *arguments: str) -> str:
        done = subprocess.run(self.command(*arguments), env=self.environ, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def python(self, code: str) -> str:
        """What `code` prints, with Django set up."""
        return self.manage("shell", "-c", code).strip()

    def dies(self, code: str) -> None:
        """Runs `code`, which kills its own process."""
        command = self.command("shell", "-c", code)
        done = subprocess.run(command, env=self.environ, capture_output=True, text=True, timeout=60)
        assert done.returncode == -signal.SIGKILL, done.stdout + done.stderr

    def follow_feed(self) -> None:
        """The feed's process, until the broker has nothing more for it; then it is asked to stop, and does."""
        feed = subprocess.Popen(self.command("follow_dead_letters"), env=self.environ)
        try:
            deadline = time.monotonic() + 30
            while self.stage.count("DLQ.feed") and time.monotonic() < deadline:
                time.sleep(0.2)
        finally:
            feed.send_signal(signal.SIGTERM)
            assert feed.wait(20) == 0

    def letters(self, key: str) -> int:
        code = f"from dlq.models import DeadLetter; print(DeadLetter.objects.filter(setting_key='{key}').count())"
        return int(self.python(code).splitlines()[-1])
