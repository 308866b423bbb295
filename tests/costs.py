"""What each test costs: seconds on the wall, seconds of processors, and what it reaches for. Kept beside the services
that tests share, so that a table over all of them can be made at any time: python -m tests.costs."""

import json
import os
import sys
import time
from collections import Counter
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tests.services import cache

SHOWN = 20
REACHED = {"subprocess.Popen": "process", "os.posix_spawn": "process", "os.fork": "process", "socket.connect": "socket"}


class Meter:
    """One session's. Of processors it sees this process and its children that have ended."""

    def __init__(self) -> None:
        self.costs: dict[str, dict[str, Any]] = {}
        self.reached: set[str] = set()
        sys.addaudithook(self._hear)

    def _hear(self, event: str, _arguments: tuple[Any, ...]) -> None:
        if (what := REACHED.get(event)) is not None:
            self.reached.add(what)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        self.reached.clear()
        wall, cpu = time.monotonic(), _processors()
        try:
            return (yield)
        finally:
            wants = "db" if "django_db_setup" in item.fixturenames else ""  # type: ignore[attr-defined]
            self.costs[item.nodeid] = {
                "wall": round(time.monotonic() - wall, 3),
                "cpu": round(_processors() - cpu, 3),
                "reached": sorted(self.reached | {wants} - {""}),
            }

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        slowest = sorted(self.costs.items(), key=lambda each: -each[1]["wall"])[:SHOWN]
        terminalreporter.section(f"the {len(slowest)} slowest: seconds, of processors")
        for name, cost in slowest:
            terminalreporter.write_line(f"{cost['wall']:8.1f} {cost['cpu']:8.1f}  {name}")

    def pytest_sessionfinish(self) -> None:
        if self.costs:
            _keep(self.costs)


def _processors() -> float:
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


def folder() -> Path:
    """One file of each kind of database: a test that runs on both costs twice."""
    return cache() / "costs"


def database() -> str:
    return os.environ.get("MA_TEST_DATABASE", "sqlite")


def _keep(costs: dict[str, dict[str, Any]]) -> None:
    """What other tests cost before stays; stages that end at the same time have files of their own."""
    folder().mkdir(parents=True, exist_ok=True)
    first = next(iter(costs)).split("::")[0].split("/")[1]
    place = folder() / f"{database()}-{first}.json"
    try:
        known = json.loads(place.read_text())
    except (OSError, ValueError):
        known = {}
    scratch = place.with_suffix(f".{os.getpid()}")
    scratch.write_text(json.dumps(known | costs, indent=0, sort_keys=True))
    scratch.replace(place)


def seconds_of_files() -> dict[str, float]:
    """On the wall, of each file of tests on this database, as it was measured last."""
    known: dict[str, dict[str, Any]] = {}
    for place in sorted(folder().glob(f"{database()}-*.json"), key=lambda each: each.stat().st_mtime):
        known |= json.loads(place.read_text())
    seconds: Counter[str] = Counter()
    for name, cost in known.items():
        seconds[name.partition("::")[0]] += cost["wall"]
    return dict(seconds)


def table(where: Path) -> list[tuple[str, str, int, float, float]]:
    """Database, folder, items, seconds on the wall, seconds of processors: one row for each folder of tests."""
    rows: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for place in sorted(where.glob("*.json")):
        for name, cost in json.loads(place.read_text()).items():
            key = (place.name.partition("-")[0], "/".join(name.split("/")[:2]))
            rows.setdefault(key, []).append((cost["wall"], cost["cpu"]))
    return [
        (database, tests, len(some), sum(wall for wall, _cpu in some), sum(cpu for _wall, cpu in some))
        for (database, tests), some in sorted(rows.items())
    ]


if __name__ == "__main__":
    for kind, tests, items, wall, cpu in table(folder()):
        print(f"{kind:11} {tests:20} {items:6} items {wall / 60:7.1f} min {cpu / 60:7.1f} min of processors")
