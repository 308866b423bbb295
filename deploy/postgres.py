"""A throw-away PostgreSQL cluster for tests: made in a temporary folder, run as its own user, ended by its pid."""

import os
import pwd
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from deploy.config import LOOPBACK
from deploy.ports import free_ports
from deploy.problem import Problem
from deploy.tools import run_logged

USER = "ma"
START_SECONDS = 30.0
# Nobody needs this data after a crash, so nothing waits for the disk.
SETTINGS = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off", "max_connections": "60"}


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

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://{USER}:{self.password}@{LOOPBACK}:{self.port}/{database}"

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def start() -> Cluster:
    binaries = programs()
    if binaries is None:
        raise Problem("PostgreSQL is not installed: apt-get install postgresql")
    folder = Path(tempfile.mkdtemp(prefix="ma-postgres-"))
    owner = _owner()
    password, port = secrets.token_urlsafe(16), free_ports(1)[0]
    _initialise(binaries, folder, password, owner)
    process = _run(binaries, folder, port, owner)
    _wait(process, port, folder / "postgres.log")
    return Cluster(folder, port, password, process)


def _owner() -> pwd.struct_passwd | None:
    """PostgreSQL refuses to run as root: who it runs as instead, None for the user who asks."""
    if os.getuid() != 0:
        return None
    try:
        return pwd.getpwnam("postgres")
    except KeyError:
        return pwd.getpwnam("nobody")


def _as(owner: pwd.struct_passwd | None) -> list[str]:
    if owner is None:
        return []
    return ["setpriv", f"--reuid={owner.pw_uid}", f"--regid={owner.pw_gid}", "--clear-groups", "--"]


def _initialise(binaries: Path, folder: Path, password: str, owner: pwd.struct_passwd | None) -> None:
    password_file = folder / "password"
    password_file.touch(mode=0o600)
    password_file.write_text(password)
    if owner is not None:
        for path in (folder, password_file):
            os.chown(path, owner.pw_uid, owner.pw_gid)
    command = [*_as(owner), str(binaries / "initdb"), "-D", str(folder / "data"), "-U", USER, "-A", "scram-sha-256"]
    command += ["--pwfile", str(password_file), "-E", "UTF8", "--locale=C.UTF-8", "--no-sync"]
    run_logged(command, what="initdb", log=folder / "initdb.log", cwd=folder)


def _run(binaries: Path, folder: Path, port: int, owner: pwd.struct_passwd | None) -> subprocess.Popen[bytes]:
    settings = SETTINGS | {"listen_addresses": LOOPBACK, "port": str(port), "unix_socket_directories": str(folder)}
    command = [*_as(owner), str(binaries / "postgres"), "-D", str(folder / "data")]
    command += [f"--{name}={value}" for name, value in settings.items()]
    with (folder / "postgres.log").open("ab") as log:
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, cwd=folder, start_new_session=True
        )


def _wait(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not _accepts(port):
        if process.poll() is not None or time.monotonic() > deadline:
            process.kill()
            raise Problem(f"PostgreSQL did not start; see {log}")
        time.sleep(0.1)


def _accepts(port: int) -> bool:
    """Its answer to a request for TLS (one byte, S or N) comes once it takes connections."""
    try:
        with socket.create_connection((LOOPBACK, port), 2.0) as connection:
            connection.sendall(b"\x00\x00\x00\x08\x04\xd2\x16\x2f")
            return connection.recv(1) in (b"S", b"N")
    except OSError:
        return False
