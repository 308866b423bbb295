"""Talks to the process runner (supervisor) over its Unix socket."""

import http.client
import os
import resource
import signal
import socket
import subprocess
import time
import xmlrpc.client
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deploy.config import REPOSITORY
from deploy.console import DeployError
from deploy.environment import UNSET
from deploy.layout import Layout
from deploy.processes import earlier_starts

START_SECONDS = 20.0
# supervisor's fault codes
ALREADY_STARTED, NOT_RUNNING, ABNORMAL_TERMINATION = 60, 70, 40


@dataclass(frozen=True)
class ProcessState:
    name: str
    state: str
    pid: int
    uptime: int  # seconds; 0 where it does not run
    description: str

    @property
    def running(self) -> bool:
        return self.state == "RUNNING"


class _SocketConnection(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("localhost")
        self.path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.connect(str(self.path))


class _SocketTransport(xmlrpc.client.Transport):
    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path

    def make_connection(self, host: Any) -> http.client.HTTPConnection:
        connection = _SocketConnection(self.path)
        self._connection = host, connection  # what close() closes
        return connection


class Runner:
    def __init__(self, layout: Layout) -> None:
        self.layout = layout

    def _call(self, method: str, *arguments: Any) -> Any:
        """One connection per call: the calls of several threads do not share one."""
        transport = _SocketTransport(self.layout.socket)
        with xmlrpc.client.ServerProxy("http://localhost", transport=transport) as proxy:
            return getattr(proxy.supervisor, method)(*arguments)

    def alive(self) -> bool:
        try:
            return bool(self._call("getState")["statecode"] == 1)
        except (OSError, http.client.HTTPException):
            return False

    def begin(self) -> None:
        """Starts the runner itself, detached from the terminal."""
        program = REPOSITORY / ".venv" / "bin" / "supervisord"
        command = [str(program), "-c", str(self.layout.supervisor_config)]
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            env={
                name: value for name, value in earlier_starts.marked(self.layout).items() if name not in UNSET
            },
        )
        if done.returncode != 0:
            raise DeployError(f"supervisord did not start: {(done.stderr or done.stdout).strip()}")
        deadline = time.monotonic() + START_SECONDS
        while not self.alive():
            if time.monotonic() > deadline:
                raise DeployError(f"supervisord does not answer; see {self.layout.log('supervisord')}")
            time.sleep(0.1)

    def states(self) -> list[ProcessState]:
        return [_state(info) for info in self._call("getAllProcessInfo")]

    def state(self, name: str) -> ProcessState:
        return _state(self._call("getProcessInfo", name))

    def start(self, name: str) -> None:
        """Returns at once; whether it is ready is for `readiness` to find out."""
        try:
            self._call("startProcess", name, False)
        except xmlrpc.client.Fault as fault:
            if fault.faultCode != ALREADY_STARTED:
                raise DeployError(f"{name} cannot be started: {fault.faultString}") from fault

    def stop(self, name: str) -> None:
        """Returns when the process has ended."""
        try:
            self._call("stopProcess", name, True)
        except xmlrpc.client.Fault as fault:
            if fault.faultCode != NOT_RUNNING:
                raise DeployError(f"{name} cannot be stopped: {fault.faultString}") from fault

    def end(self) -> None:
        """Ends the runner and whatever it still runs."""
        pid = self._call("getPID")
        self._call("shutdown")
        deadline = time.monotonic() + 60
        while _exists(pid):
            if time.monotonic() > deadline:
                os.kill(pid, signal.SIGKILL)
            time.sleep(0.1)


def _state(info: dict[str, Any]) -> ProcessState:
    running = info["statename"] == "RUNNING"
    uptime = int(info["now"]) - int(info["start"]) if running else 0
    return ProcessState(info["name"], info["statename"], int(info["pid"]), uptime, info["description"])


def _exists(pid: int) -> bool:
    """One that has ended and was not waited for is gone, too: in a container the first process may wait for
    nobody."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


# -- open files ----------------------------------------------------------------------------------------------

# What supervisord asks for. It and the broker refuse to start with what some shells grant, and the broker
# says of it only that a class is missing.
NEEDED = 1024


def allow_open_files() -> None:
    """Raises the limit of this process and of all that it starts, where it may. Raises DeployError where it
    may not."""
    granted, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if granted == resource.RLIM_INFINITY or granted >= NEEDED:
        return
    if most != resource.RLIM_INFINITY and most < NEEDED:
        raise DeployError(
            f"a process may open {most} files at once here (ulimit -Hn), and {NEEDED} are needed: raise "
            f"`nofile` of "
            "this user in /etc/security/limits.conf, sign in again, then ./ma up"
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (NEEDED, most))
