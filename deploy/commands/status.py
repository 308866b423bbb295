"""./ma status: each process by its runner, and the site's own view of its parts."""

import http.client
import json
import xmlrpc.client
from dataclasses import asdict
from typing import Any

from deploy import disk, leftovers, site_health
from deploy.config import Config
from deploy.console import duration, say, table
from deploy.layout import Layout
from deploy.runner import ProcessState, Runner


def run(config: Config, *, as_json: bool) -> int:
    """0 where every process that was started runs, the site is well and no disk is full."""
    layout = Layout(config.data)
    states = _states(Runner(layout))
    disks = disk.file_systems(layout)
    left = [] if states else leftovers.find(layout)
    health = site_health.ask(config) if states else None
    if as_json:
        document = {
            "processes": [asdict(state) for state in states],
            "left_behind": [{"name": leftovers.name(pid), "pid": pid} for pid in left],
            "health": health,
            "disks": [asdict(each) | {"problem": each.problem} for each in disks],
        }
        say(json.dumps(document, indent=2))
    elif states:
        say(table([("process", "state", "uptime", "pid"), *map(_row, states)]))
        say(f"health: {summary(health)}")
    elif left:
        names = ", ".join(f"{leftovers.name(pid)} {pid}" for pid in left)
        say(
            f"the process runner was killed; these are left of it: {names}\n./ma down ends them, then ./ma up"
        )
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
    return f"heard {duration(age)} ago" if isinstance(age, int | float) else "never heard"


def _row(state: ProcessState) -> tuple[str, str, str, str]:
    if state.running:
        return state.name, "running", duration(state.uptime), str(state.pid)
    return state.name, state.state.lower(), state.description, ""


def _as_wanted(state: ProcessState) -> bool:
    """The demo may have been left out; all else has to run."""
    return state.running or (state.name == "demo" and state.state == "STOPPED")
