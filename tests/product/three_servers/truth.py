"""What the agents of these tests write down themselves: one file per server and setting, a line per event.

Instants are CLOCK_BOOTTIME, the one clock that all servers of one machine share and nobody sets.
"""

import json
import os
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Event:
    """`what`: begin or end of a handling, or a sign of life (beat) of a standalone agent. `at` in seconds."""

    server: str
    setting: str
    activation: str
    what: str
    at: float
    pid: int
    note: int = -1
    attempt: int = 0


def boot_time() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def write(folder: Path, event: Event) -> None:
    """One write with O_APPEND: lines of several processes never mix, and a kill leaves whole lines."""
    path = folder / f"{event.setting}@{event.server}.jsonl"
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.write(file, json.dumps(asdict(event)).encode() + b"\n")
    finally:
        os.close(file)


def read(folder: Path, setting: str, what: str = "begin") -> list[Event]:
    """Events of one kind of all servers in the order in which they happened."""
    lines = (line for path in folder.glob(f"{setting}@*.jsonl") for line in path.read_text().splitlines())
    events = [Event(**json.loads(line)) for line in lines]
    return sorted((event for event in events if event.what == what), key=lambda event: event.at)


def of(server: str, events: Iterable[Event]) -> list[Event]:
    return [event for event in events if event.server == server]
