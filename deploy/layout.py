"""What lies where under the data folder."""

import hashlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from deploy.console import DeployError

# A Unix socket's path has room for 107 bytes; supervisord binds to a temporary name some characters longer.
LONGEST_SOCKET_PATH = 90


@dataclass(frozen=True)
class Layout:
    data: Path

    @property
    def broker(self) -> Path:
        return self.data / "broker"

    @property
    def redis(self) -> Path:
        return self.data / "redis"

    @property
    def database(self) -> Path:
        return self.data / "db.sqlite3"

    @property
    def secrets(self) -> Path:
        return self.data / "secrets"

    @property
    def logs(self) -> Path:
        return self.data / "log"

    @property
    def run(self) -> Path:
        return self.data / "run"

    @property
    def static(self) -> Path:
        return self.data / "static"

    @property
    def archive(self) -> Path:
        return self.data / "archive"

    @property
    def supervisor_config(self) -> Path:
        return self.run / "supervisord.conf"

    @property
    def supervisor_pid(self) -> Path:
        return self.run / "supervisord.pid"

    @property
    def socket(self) -> Path:
        path = self.run / "supervisor.sock"
        if len(os.fsencode(path)) <= LONGEST_SOCKET_PATH:
            return path
        digest = hashlib.sha256(os.fsencode(self.data)).hexdigest()[:16]
        return Path(tempfile.gettempdir()) / f"ma-{os.getuid()}-{digest}.sock"

    @property
    def stopped(self) -> Path:
        """When everything had ended in order last."""
        return self.run / "stopped"

    @property
    def restore_marker(self) -> Path:
        """There while a restore moves things about; what a killed one leaves."""
        return self.data / "restore.json"

    def kma(self, server: str) -> Path:
        return self.data / "kma" / server

    def log(self, process: str) -> Path:
        return self.logs / f"{process}.log"

    def make_folders(self) -> None:
        """The folders that hold secrets, or files made from them, are for their owner only."""
        try:
            for folder in (self.data, self.redis, self.logs, self.static):
                folder.mkdir(parents=True, exist_ok=True)
            for folder in (self.secrets, self.run, self.data / "kma"):
                folder.mkdir(exist_ok=True)
                folder.chmod(0o700)
        except OSError as error:
            why = error.strerror or error
            raise DeployError(
                f"MA_DATA: {error.filename} cannot be created or used as a folder: {why}"
            ) from error
