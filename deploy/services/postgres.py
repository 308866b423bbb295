"""A throw-away PostgreSQL cluster for tests: made in a temporary folder, run as its own user, ended by its
pid."""

import os
import pwd
import secrets
import shutil
import socket
import struct
import subprocess
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from deploy.config import LOOPBACK
from deploy.console import DeployError, run_logged
from deploy.services.ports import free_ports

USER = "ma"
START_SECONDS = 30.0
# Nobody needs this data after a crash, so nothing waits for the disk.
# An ANALYZE of autovacuum would keep what a test deletes from the VACUUM whose effect the test measures.
SETTINGS = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
    "max_connections": "60",
}
# Of a cluster that is to be killed: what it has confirmed is there afterwards.
DURABLE = {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on", "max_connections": "60"}


def programs() -> Path | None:
    """The folder with initdb and postgres, of the newest version that is installed."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: float(path.parts[-3]))
    if found:
        return found[-1].parent
    on_path = shutil.which("initdb")
    return Path(on_path).resolve().parent if on_path else None


@dataclass
class Cluster:
    folder: Path
    port: int
    password: str
    process: subprocess.Popen[bytes]
    settings: Mapping[str, str]

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://{USER}:{self.password}@{LOOPBACK}:{self.port}/{database}"

    def kill(self) -> None:
        """As a crash would: its sessions end at once, wherever they are."""
        self.process.kill()
        self.process.wait()

    def restart(self) -> None:
        """After a kill. Returns when it takes connections; its sessions of before must have ended first."""
        binaries = _programs_or_problem()
        deadline = time.monotonic() + START_SECONDS
        while True:
            self.process = _run(binaries, self.folder, self.port, self.settings)
            try:
                _wait(self.process, self.port, self.folder / "postgres.log")
                return
            except DeployError:
                if time.monotonic() > deadline:
                    raise

    def promote(self) -> None:
        """Returns when a standby takes writes."""
        binaries = _programs_or_problem()
        command = [*_as_owner(), str(binaries / "pg_ctl"), "promote", "-w", "-D", str(self.folder / "data")]
        run_logged(command, what="pg_ctl promote", log=self.folder / "promote.log", cwd=self.folder)

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def start(settings: Mapping[str, str] = SETTINGS) -> Cluster:
    binaries = _programs_or_problem()
    folder = Path(tempfile.mkdtemp(prefix="ma-postgres-"))
    password, port = secrets.token_urlsafe(16), free_ports(1)[0]
    _initialise(binaries, folder, password)
    process = _run(binaries, folder, port, settings)
    _wait(process, port, folder / "postgres.log")
    return Cluster(folder, port, password, process, settings)


# What a primary confirms is on its standby, too.
REPLICATED = {**DURABLE, "synchronous_standby_names": "*"}


def follow(primary: Cluster) -> Cluster:
    """A standby of a cluster that runs, with all that it has."""
    binaries = _programs_or_problem()
    folder = Path(tempfile.mkdtemp(prefix="ma-postgres-"))
    owner = _owner()
    if owner is not None:
        os.chown(folder, owner.pw_uid, owner.pw_gid)
    source = f"host={LOOPBACK} port={primary.port} user={USER} password={primary.password}"
    command = [
        *_as_owner(),
        str(binaries / "pg_basebackup"),
        "-D",
        str(folder / "data"),
        "-R",
        "-X",
        "stream",
    ]
    command += ["--checkpoint=fast", "-d", source]
    run_logged(command, what="pg_basebackup", log=folder / "basebackup.log", cwd=folder)
    port = free_ports(1)[0]
    process = _run(binaries, folder, port, DURABLE)
    _wait(process, port, folder / "postgres.log")
    return Cluster(folder, port, primary.password, process, DURABLE)


def _programs_or_problem() -> Path:
    binaries = programs()
    if binaries is None:
        raise DeployError("PostgreSQL is not installed: apt-get install postgresql")
    return binaries


def _owner() -> pwd.struct_passwd | None:
    """PostgreSQL refuses to run as root: who it runs as instead, None for the user who asks."""
    if os.getuid() != 0:
        return None
    try:
        return pwd.getpwnam("postgres")
    except KeyError:
        return pwd.getpwnam("nobody")


def _as_owner() -> list[str]:
    owner = _owner()
    if owner is None:
        return []
    return ["setpriv", f"--reuid={owner.pw_uid}", f"--regid={owner.pw_gid}", "--clear-groups", "--"]


def _initialise(binaries: Path, folder: Path, password: str) -> None:
    owner = _owner()
    password_file = folder / "password"
    password_file.touch(mode=0o600)
    password_file.write_text(password)
    if owner is not None:
        for path in (folder, password_file):
            os.chown(path, owner.pw_uid, owner.pw_gid)
    command = [
        *_as_owner(),
        str(binaries / "initdb"),
        "-D",
        str(folder / "data"),
        "-U",
        USER,
        "-A",
        "scram-sha-256",
    ]
    command += ["--pwfile", str(password_file), "-E", "UTF8", "--locale=C.UTF-8", "--no-sync"]
    run_logged(command, what="initdb", log=folder / "initdb.log", cwd=folder)


def _run(binaries: Path, folder: Path, port: int, settings: Mapping[str, str]) -> subprocess.Popen[bytes]:
    settings = dict(settings) | {
        "listen_addresses": LOOPBACK,
        "port": str(port),
        "unix_socket_directories": str(folder),
    }
    command = [*_as_owner(), str(binaries / "postgres"), "-D", str(folder / "data")]
    command += [f"--{name}={value}" for name, value in settings.items()]
    with (folder / "postgres.log").open("ab") as log:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=folder,
            start_new_session=True,
        )


def _wait(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not _accepts(port):
        if process.poll() is not None or time.monotonic() > deadline:
            process.kill()
            raise DeployError(f"PostgreSQL did not start; see {log}")
        time.sleep(0.1)


def _accepts(port: int) -> bool:
    """It asks who wants to come in (R) only when it is up; while it recovers it answers with an error (E)."""
    parameters = f"user\0{USER}\0database\0postgres\0\0".encode()
    try:
        with socket.create_connection((LOOPBACK, port), 2.0) as connection:
            # The length of the whole message, version 3.0 of the protocol, who and where to.
            connection.sendall(struct.pack("!II", 8 + len(parameters), 3 << 16) + parameters)
            return connection.recv(1) == b"R"
    except OSError:
        return False
