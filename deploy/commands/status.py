"""./ma status: each process by its runner, and the site's own view of its parts. ./ma logs, ./ma env."""

import http.client
import json
import os
import shlex
import sys
import time
import xmlrpc.client
from collections import deque
from dataclasses import asdict
from pathlib import Path
from typing import Any
from urllib.parse import quote

from deploy import certificates, disk, environment, secret_files
from deploy.config import LOOPBACK, Config
from deploy.console import DeployError, duration, say, table
from deploy.layout import Layout
from deploy.processes import earlier_starts, readiness
from deploy.processes.runner import ProcessState, Runner


def status(config: Config, *, as_json: bool) -> int:
    """0 where every process that was started runs, the site is well and no disk is full."""
    layout = Layout(config.data)
    states = _states(Runner(layout))
    disks = disk.file_systems(layout)
    left = [] if states else earlier_starts.find(layout)
    health = readiness.ask_site(config) if states else None
    if as_json:
        document = {
            "processes": [asdict(state) for state in states],
            "left_behind": [{"name": earlier_starts.process_name(pid), "pid": pid} for pid in left],
            "health": health,
            "disks": [asdict(each) | {"problem": each.problem} for each in disks],
        }
        say(json.dumps(document, indent=2))
    elif states:
        say(table([("process", "state", "uptime", "pid"), *map(_row, states)]))
        say(f"health: {summary(health)}")
    elif left:
        names = ", ".join(f"{earlier_starts.process_name(pid)} {pid}" for pid in left)
        say(f"the process runner was killed; still running: {names}\nStop them with ./ma down, then ./ma up")
    else:
        say("nothing is running: ./ma up")
    if not as_json:
        for line in disk.lines(layout, disks):
            say(line)
    well = health is not None and health.get("status") == "ok" and not any(each.problem for each in disks)
    return 0 if states and well and all(_as_wanted(state) for state in states) else 1


def _states(runner: Runner) -> list[ProcessState]:
    """None where the runner does not answer, or stops answering."""
    try:
        return runner.states() if runner.alive() else []
    except (OSError, http.client.HTTPException, xmlrpc.client.Error):
        return []


def summary(health: dict[str, Any] | None) -> str:
    if health is None:
        return "the site does not answer"
    parts = health.get("parts")
    details = [f"{name} {_word(part)}" for name, part in parts.items()] if isinstance(parts, dict) else []
    servers = health.get("servers")
    if isinstance(servers, dict):
        details += [f"{name} {_heard(age)}" for name, age in servers.items()]
    return " · ".join([str(health.get("status", "unknown")), *details])


def _word(part: Any) -> str:
    return str(part.get("status", part.get("state", "unknown")) if isinstance(part, dict) else part)


def _heard(age: Any) -> str:
    return f"heartbeat {duration(age)} ago" if isinstance(age, int | float) else "no heartbeat yet"


def _row(state: ProcessState) -> tuple[str, str, str, str]:
    if state.running:
        return state.name, "running", duration(state.uptime), str(state.pid)
    return state.name, state.state.lower(), state.description, ""


def _as_wanted(state: ProcessState) -> bool:
    """The demo may have been left out; all else has to run."""
    return state.running or (state.name == "demo" and state.state == "STOPPED")


# -- ./ma logs NAME: the end of a process's log; -f goes on as it grows --------------------------------------


PAUSE_SECONDS = 0.3


def logs(config: Config, *, name: str | None, follow: bool, lines: int) -> int:
    layout = Layout(config.data)
    known = sorted(path.stem for path in layout.logs.glob("*.log"))
    if name is None:
        print("\n".join(known))
        return 0
    if name not in known:
        raise DeployError(f"no log {name!r}; existing logs: {', '.join(known) or 'none yet'}")
    try:
        _show(layout.log(name), follow=follow, lines=lines)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # `ma logs web | head` has seen enough; nothing may complain at exit either.
        sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115 - open until the process ends
    return 0


def _show(path: Path, *, follow: bool, lines: int) -> None:
    with path.open(encoding="utf-8", errors="replace") as file:
        _print("".join(deque(file, maxlen=lines)))
        while follow and not _rotated(path, file.fileno()):
            _print(file.read())
            time.sleep(PAUSE_SECONDS)
        _print(file.read())
    if follow:
        _show(path, follow=True, lines=sys.maxsize)


def _rotated(path: Path, descriptor: int) -> bool:
    """The runner renames a log that has grown too large and begins a new one under its name."""
    try:
        return path.stat().st_ino != os.fstat(descriptor).st_ino
    except FileNotFoundError:
        return False


def _print(text: str) -> None:
    if text:
        print(text, end="", flush=True)


# -- ./ma env: what a script needs to connect ----------------------------------------------------------------
# It is made from files that only their owner can read.


def env(config: Config, *, as_json: bool) -> int:
    layout = Layout(config.data)
    facts = gather(config, layout)
    if as_json:
        say(json.dumps(facts, indent=2))
    else:
        # For `eval "$(./ma env)"`: the site's environment, secrets as names of files.
        for name, value in facts["environ"].items():
            say(f"export {name}={shlex.quote(value)}")
    return 0


def gather(config: Config, layout: Layout) -> dict[str, Any]:
    passwords = secret_files.broker_passwords(layout)
    return {
        "url": config.address,
        "api": f"{config.address}api/v1/",
        "data": str(layout.data),
        "logs": str(layout.logs),
        "broker": {
            "amqp": config.amqp_url,
            "stomp": config.stomp_address,
            "core": core_url(config, layout),
            "accounts": {user: {"user": user, "password": password} for user, password in passwords.items()},
        },
        "redis": secret_files.read_secret(layout.secrets / "redis_url"),
        "database": environment.database_url(config, layout),
        "servers": {
            server: {"token_file": str(secret_files.token_file(layout, server))} for server in config.servers
        },
        "environ": environment.site(config, layout) | environment.publisher(layout),
    }


def core_url(config: Config, layout: Layout) -> str:
    """As JMS clients of Artemis read it; their truststore is the authority of this installation."""
    url = f"tcp://{LOOPBACK}:{config.core_port}"
    if not config.tls:
        return url
    authority = certificates.files_of(layout).authority
    return f"{url}?sslEnabled=true&trustStoreType=PEM&trustStorePath={quote(str(authority))}"
