"""What the process runner (supervisor) is told: one script per process that can also be run by hand, one
config."""

import os
import shlex
from collections.abc import Sequence
from pathlib import Path

from deploy import environment, secret_files
from deploy.config import REPOSITORY, Config
from deploy.environment import Process
from deploy.layout import Layout

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


def is_written(process: Process, config: Config, layout: Layout, *, demo: bool) -> bool:
    """Whether the script on the disk is the one that `write_script` would write."""
    path = script_path(layout, process.name)
    return path.exists() and path.read_text("utf-8") == _script_of(process, config, layout, demo=demo)


def _script_of(process: Process, config: Config, layout: Layout, *, demo: bool) -> str:
    return script(process, environment.of_process(process, config, layout, demo=demo))


def script_path(layout: Layout, name: str) -> Path:
    return layout.run / f"{name}.sh"


def script(process: Process, settings: dict[str, str]) -> str:
    lines = ["#!/bin/sh", "# Written anew by every ./ma up.", f"cd {shlex.quote(str(REPOSITORY))} || exit 1"]
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
; Written anew by every ./ma up.
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
