"""One real KMA, started by the test, with a wire of its own to the MA and another to the broker."""

import os
import signal
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from deploy.config import LOOPBACK, REPOSITORY
from tests.product.three_servers.proxy import Wire

STOP_SECONDS = 60


class Kma:
    """`environ`: the environment that `./ma` would give it; the addresses are replaced by the wires'."""

    def __init__(
        self, server: str, environ: Mapping[str, str], ma_port: int, amqp_port: int, log: Path
    ) -> None:
        self.server = server
        self.to_ma = Wire(ma_port)
        self.to_broker = Wire(amqp_port)
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None
        self._environ = dict(environ) | {
            "MA_URL": f"http://{LOOPBACK}:{self.to_ma.port}",
            "KMA_AMQP_URL": f"amqp://{LOOPBACK}:{self.to_broker.port}",
        }

    @property
    def pid(self) -> int:
        assert self._process is not None, f"{self.server} was not started"
        return self._process.pid

    @property
    def runs(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        command = ["celery", "-A", "kma.app", "worker", "--pool=threads", "-c", "2"]
        command += ["-Q", f"kma.{self.server}", "-n", f"kma.{self.server}@%h"]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [str(REPOSITORY / ".venv" / "bin" / command[0]), *command[1:]],
                cwd=REPOSITORY,
                env=self._environ,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def kill(self) -> None:
        """As a crash of the machine would: its children die with it."""
        os.kill(self.pid, signal.SIGKILL)
        assert self._process is not None
        self._process.wait(STOP_SECONDS)

    def freeze(self) -> None:
        os.kill(self.pid, signal.SIGSTOP)

    def wake(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def mend(self) -> None:
        self.to_ma.mend()
        self.to_broker.mend()

    def stop(self) -> None:
        """In order, whatever the test before it did to it."""
        self.mend()
        if self.runs:
            assert self._process is not None
            with suppress(ProcessLookupError):
                self.wake()
            self._process.terminate()
            try:
                self._process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def close(self) -> None:
        self.stop()
        self.to_ma.close()
        self.to_broker.close()
