"""What each test costs: seconds on the wall, seconds of processors, and what it reaches for. Kept beside the
services that tests share, so that a table over all of them can be made at any time: python -m tests.costs."""

import json
import math
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

from tests import bounds, markers
from tests.processors import Processors
from tests.reach import Reach
from tests.services import cache

SHOWN = 20
Cost = dict[str, Any]


class Meter:
    """One session's. Workers of pytest-xdist pass on what they measured; their controller judges and keeps
    it."""

    def __init__(self) -> None:
        self.costs: dict[str, Cost] = {}
        self.reach = Reach()
        self.processors = Processors()
        self.slowness = bounds.slowness()
        # A tracer, as that of coverage, slows tests down and not the reference.
        self.judges = sys.gettrace() is None

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        kind, both = markers.kind_of(item), item.get_closest_marker("both_databases") is not None
        self.reach.begin()
        self.processors.begin(kills=kind == "kill")
        wall = time.monotonic()
        try:
            return (yield)
        finally:
            self.costs[item.nodeid] = {
                "kind": kind,
                "bound": bounds.bound(kind, both_databases=both) if self.judges else math.inf,
                "wall": round(time.monotonic() - wall, 3),
                "cpu": round(self.processors.all(), 3),
                "own": self.processors.own,
                "reached": sorted(self.reach.found),
            }

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Generator[None, Any, Any]:
        if fixturedef.scope == "function":
            return (yield)
        with self.processors.shared(), self.reach.shared(fixturedef.argname):
            return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        try:
            answer = yield
        finally:
            self.processors.end()
            self.reach.end()
        kind = markers.kind_of(item)
        for what in sorted(bounds.FORBIDDEN.get(kind, frozenset()) & self.reach.found.keys()):
            pytest.fail(
                f"{item.nodeid} is {kind}, it reaches for a {what}: {self.reach.found[what]}", pytrace=False
            )
        return answer

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Nothing comes from a worker that died."""
        self.costs |= getattr(node, "workeroutput", {}).get("costs", {})

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        passed_on = getattr(session.config, "workeroutput", None)
        if self.costs and (passed_on is not None or not session.config.getoption("numprocesses", None)):
            self._count_in_the_reference()
        if passed_on is not None:
            passed_on["costs"] = self.costs
        elif self.costs:
            _keep(self.costs, session.config.rootpath)
            if exitstatus == pytest.ExitCode.OK and any(map(bounds.fails, self.costs.values())):
                session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def _count_in_the_reference(self) -> None:
        slowness = max(self.slowness, bounds.slowness())
        for cost in self.costs.values():
            cost["own"] = round(cost["own"] / slowness, 3)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self.costs:
            return
        slowest = sorted(self.costs.items(), key=lambda each: -each[1]["wall"])[:SHOWN]
        terminalreporter.section(f"the {len(slowest)} slowest: seconds, of processors")
        for name, cost in slowest:
            terminalreporter.write_line(f"{cost['wall']:8.1f} {cost['cpu']:8.1f}  {name}")
        if dear := sorted(line for each in self.costs.items() if (line := bounds.line(*each))):
            terminalreporter.section("above the bound of their kind (tests/bounds.py)")
            for line in dear:
                terminalreporter.write_line(line)


def folder() -> Path:
    return cache() / "costs"


def database() -> str:
    return os.environ.get("MA_TEST_DATABASE", "sqlite")


def _keep(costs: dict[str, Cost], root: Path) -> None:
    """In a file for each database and folder of tests: stages that end at the same time have different
    ones."""
    folder().mkdir(parents=True, exist_ok=True)
    for tests in {_folder_of(name) for name in costs}:
        place = folder() / f"{database()}-{Path(tests).name}.json"
        known = {
            name: cost
            for name, cost in ({**_read(place), **costs}).items()
            if _folder_of(name) == tests and (root / _file_of(name)).exists()
        }
        scratch = place.with_suffix(f".{os.getpid()}")
        scratch.write_text(json.dumps(known, indent=0, sort_keys=True))
        scratch.replace(place)


def _read(place: Path) -> dict[str, Cost]:
    try:
        return dict(json.loads(place.read_text()))
    except (OSError, ValueError):
        return {}


def _file_of(test: str) -> str:
    return test.partition("::")[0]


def _folder_of(test: str) -> str:
    return "/".join(_file_of(test).split("/")[:2])


def seconds_of_files() -> dict[str, float]:
    """On the wall, of each file of tests on this database, as it was measured last."""
    seconds: Counter[str] = Counter()
    for name, cost in _known(folder(), database()).items():
        seconds[_file_of(name)] += cost["wall"]
    return dict(seconds)


def _known(where: Path, database: str) -> dict[str, Cost]:
    known: dict[str, Cost] = {}
    for place in sorted(where.glob(f"{database}-*.json"), key=lambda each: each.stat().st_mtime):
        known |= _read(place)
    return known


def table(where: Path, key: Callable[[str, Cost], str]) -> list[tuple[str, str, int, float, float, int]]:
    """Database, key, items, seconds on the wall and of processors, items above their bound."""
    rows: dict[tuple[str, str], list[Cost]] = {}
    for database in sorted({place.name.partition("-")[0] for place in where.glob("*.json")}):
        for name, cost in _known(where, database).items():
            rows.setdefault((database, key(name, cost)), []).append(cost)
    return [
        (
            database,
            part,
            len(some),
            sum(each["wall"] for each in some),
            sum(each["cpu"] for each in some),
            sum(map(bounds.is_dear, some)),
        )
        for (database, part), some in sorted(rows.items())
    ]


def by_folder(name: str, _cost: Cost) -> str:
    return _folder_of(name)


def by_kind(_name: str, cost: Cost) -> str:
    return str(cost.get("kind", "?"))


if __name__ == "__main__":
    for key in (by_folder, by_kind):
        for kind, part, items, wall, cpu, dear in table(folder(), key):
            said = f"{wall / 60:7.1f} min {cpu / 60:7.1f} min of processors {dear:4} above their bound"
            print(f"{kind:11} {part:20} {items:6} items {said}")
        print()
