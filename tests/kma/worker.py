"""A whole KMA as operators start it: a Celery worker in a process of its own."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from broker.port import Account
from tests.kma.fake_ma import FakeMa
from tests.kma.fakes import SAMPLES, eventually

NO_REDIS = "redis://127.0.0.1:1/0"


class Worker:
    """`environment` overrides what is set here."""

    def __init__(self, folder: Path, ma: FakeMa, account: Account, redis_url: str = NO_REDIS) -> None:
        self.folder = folder
        self.ma = ma
        self.log = folder / f"{ma.server}.log"
        self.environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(Path(__file__).resolve().parents[2]),
            "MA_URL": ma.url,
            "KMA_SERVER": ma.server,
            "KMA_TOKEN": ma.token,
            "KMA_AGENTS": ",".join(SAMPLES),
            "KMA_SAMPLES_ANYWHERE": "1",
            "KMA_DATA": str(folder / ma.server),
            "KMA_AMQP_URL": account.url,
            "KMA_BROKER_USER": account.user,
            "KMA_BROKER_PASSWORD": account.password,
            "KMA_REDIS_URL": redis_url,
            "KMA_HEARTBEAT_SECONDS": "0.2",
        }
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [
            sys.executable,
            "-m",
            "celery",
            "-A",
            "kma.app",
            "worker",
            "--pool=threads",
            "--concurrency=1",
        ]
        command += [
            "-n",
            f"kma@{self.ma.server}",
            "--without-gossip",
            "--without-mingle",
            "--without-heartbeat",
        ]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                command, env=self.environment, stdout=log, stderr=log, cwd=self.folder
            )

    def kill(self) -> None:
        """kill -9, nothing said."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.process = None

    def stop(self, seconds: float = 40) -> int:
        if self.process is None:
            return 0
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(seconds)
        finally:
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait()
            self.process = None

    def running(self, setting: str) -> None:
        def connected() -> bool:
            return any(run["setting"] == setting and run["connected"] for run in self.ma.last["runs"])

        eventually(connected, f"a link of {setting}; see {self.log}", 40)

    def truth(self, path: Path) -> list[dict[str, Any]]:
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
