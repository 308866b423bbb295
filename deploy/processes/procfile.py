"""The Procfile: what runs, one line per process; the line of the KMA stands for one process per server."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from deploy.console import DeployError

LINE = re.compile(r"(?P<name>[a-z][a-z0-9-]*):\s*(?P<command>\S.*)")
PER_SERVER = "kma"


@dataclass(frozen=True)
class Process:
    name: str
    command: str
    server: str = ""

    @property
    def kind(self) -> str:
        """The name of its line."""
        return PER_SERVER if self.server else self.name


def parse(text: str) -> tuple[Process, ...]:
    found: dict[str, Process] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = LINE.fullmatch(line.strip())
        if match is None or match["name"] in found:
            raise DeployError(f"Procfile, line {number}: not a `name: command` of its own: {line!r}")
        found[match["name"]] = Process(match["name"], match["command"])
    return tuple(found.values())


def expand(processes: Sequence[Process], servers: Sequence[str]) -> tuple[Process, ...]:
    expanded: list[Process] = []
    for process in processes:
        if process.name == PER_SERVER:
            expanded += [Process(f"{PER_SERVER}-{server}", process.command, server) for server in servers]
        else:
            expanded.append(process)
    return tuple(expanded)
