"""The process runner (supervisor): talked to over its Unix socket, and what it is told."""

import http.client
import os
import resource
import shlex
import signal
import socket
import subprocess
import time
import xmlrpc.client
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deploy import environment, secret_files
from deploy.config import REPOSITORY, Config
from deploy.console import DeployError
from deploy.environment import UNSET, Process
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
                raise DeployError(f"supervisord does not answer: see {self.layout.log('supervisord')}")
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
            f"the limit of open files is {most} (ulimit -Hn), {NEEDED} are required: raise `nofile` of this "
            "user in /etc/security/limits.conf, sign in again, then ./ma up"
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (NEEDED, most))


# -- what the runner is told ---------------------------------------------------------------------------------
# One script per process that can also be run by hand, one config.


# Seconds that a process has to end by itself: a KMA finishes what its agents have at hand, the broker its
# journal.
STOP_SECONDS = {"kma": 40, "artemis": 40, "worker": 30, "web": 30}
DEFAULT_STOP_SECONDS = 15


def write_runner_files(
    processes: Sequence[Process], config: Config, layout: Layout, *, demo: bool = False
) -> None:
    secret_files.keep_from_shell(config, layout)
    for process in processes:
        write_script(process, config, layout, demo=demo)
    secret_files.write(layout.supervisor_config, supervisor_config(processes, layout))


def write_script(process: Process, config: Config, layout: Layout, *, demo: bool) -> None:
    secret_files.write(script_path(layout, process.name), _script_of(process, config, layout, demo=demo))


def is_script_written(process: Process, config: Config, layout: Layout, *, demo: bool) -> bool:
    """Whether the script on the disk is the one that `write_script` would write."""
    path = script_path(layout, process.name)
    return path.exists() and path.read_text("utf-8") == _script_of(process, config, layout, demo=demo)


def _script_of(process: Process, config: Config, layout: Layout, *, demo: bool) -> str:
    return script(process, environment.of_process(process, config, layout, demo=demo))


def script_path(layout: Layout, name: str) -> Path:
    return layout.run / f"{name}.sh"


def script(process: Process, settings: dict[str, str]) -> str:
    lines = ["#!/bin/sh", "# Generated by every ./ma up.", f"cd {shlex.quote(str(REPOSITORY))} || exit 1"]
    lines += [f"unset {' '.join(environment.UNSET)}"]
    lines += [f"export {name}={shlex.quote(value)}" for name, value in settings.items()]
    lines += [
        f'export PATH={shlex.quote(str(REPOSITORY / ".venv" / "bin"))}:"$PATH"',
        f"exec {process.command}",
        "",
    ]
    return "\n".join(lines)


def supervisor_config(processes: Sequence[Process], layout: Layout) -> str:
    sections = [_daemon(layout)]
    sections += [_program(process, layout) for process in processes]
    return "\n".join(sections)


def _daemon(layout: Layout) -> str:
    user = "user = root\n" if os.getuid() == 0 else ""
    return f"""\
; Generated by every ./ma up.
[unix_http_server]
file = {_text(layout.socket)}
chmod = 0700

[supervisord]
{user}nodaemon = false
directory = {_text(REPOSITORY)}
pidfile = {_text(layout.supervisor_pid)}
logfile = {_text(layout.log("supervisord"))}
logfile_maxbytes = 10MB
logfile_backups = 2
childlogdir = {_text(layout.logs)}
umask = 077

[supervisorctl]
serverurl = unix://{_text(layout.socket)}

[rpcinterface:supervisor]
supervisor.rpcinterface_factory = supervisor.rpcinterface:make_main_rpcinterface
"""


def _program(process: Process, layout: Layout) -> str:
    # Started by name once what it needs is there; from then on started again whenever it ends, with growing
    # pauses.
    return f"""\
[program:{process.name}]
command = /bin/sh {_escaped(shlex.quote(str(script_path(layout, process.name))))}
directory = {_text(REPOSITORY)}
autostart = false
autorestart = true
startsecs = 2
startretries = 100
stopwaitsecs = {STOP_SECONDS.get(process.kind, DEFAULT_STOP_SECONDS)}
killasgroup = true
redirect_stderr = true
stdout_logfile = {_text(layout.log(process.name))}
stdout_logfile_maxbytes = 20MB
stdout_logfile_backups = 3
"""


def _text(path: Path) -> str:
    return _escaped(str(path))


def _escaped(text: str) -> str:
    """A per cent sign begins a substitution in supervisor's files."""
    return text.replace("%", "%%")
