"""A plugin of pytest: what each test executes and, of all tests of a session, the branches.

Counted is what runs in the processes of the tests. Children, killed ones among them, are not: measured they
would be late for limits of time, and one that is killed writes nothing."""

import os
import shutil
import sys
import time
from collections import defaultdict
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

import pytest
from coverage import Coverage, CoverageData

from tests.changed import branches, execution_map
from tests.changed.execution_map import Executed, Place
from tests.changed.functions import WHOLE, Function, executed_in, functions

REPOSITORY = Path(__file__).resolve().parent.parent.parent
NOT_MEASURED = ("tests", "var", ".venv")


def is_measured(path: Path) -> bool:
    """Of the product."""
    return path.is_relative_to(REPOSITORY) and path.relative_to(REPOSITORY).parts[0] not in NOT_MEASURED


class Recorder:
    def __init__(self) -> None:
        left_out = [f"{REPOSITORY / folder}/*" for folder in NOT_MEASURED] + ["*/migrations/*"]
        self.coverage = Coverage(
            data_file=None,
            config_file=False,
            branch=True,
            include=[f"{REPOSITORY}/*"],
            omit=left_out,
            messages=False,
        )
        # A test that executes nothing of the product.
        self.coverage.set_option("run:disable_warnings", ["no-data-collected"])
        self.tests: dict[str, Executed] = {}
        self.arcs: defaultdict[str, set[tuple[int, int]]] = defaultdict(set)
        self.spans: dict[str, list[Function]] = {}
        self.opened: set[str] = set()
        self.left_out: set[str] = set()
        self.coverage.start()
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Templates, translations and other files of the product, when they are read."""
        if event == "open" and isinstance(arguments[0], str) and arguments[0].startswith(str(REPOSITORY)):
            self.opened.add(arguments[0])

    def _render(self, template: Any, **_: object) -> None:
        """A template that is cached is not opened again."""
        self.opened.add(str(template.origin.name))

    def pytest_sessionstart(self) -> None:
        from django.test.signals import template_rendered

        template_rendered.connect(self._render)

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        self.left_out |= {item.nodeid.partition("::")[0] for item in items}

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        self._take()
        started = time.monotonic()
        try:
            return (yield)
        finally:
            seconds = time.monotonic() - started
            self.tests[item.nodeid] = Executed(round(seconds, 3), self._take())

    def _take(self) -> dict[Place, int]:
        """Since it was taken last."""
        opened, self.opened = self.opened, set()
        places = {(_relative(path), WHOLE): 0 for path in opened if not path.endswith((".py", ".pyc"))}
        data = self.coverage.get_data()
        for path in data.measured_files():
            if not Path(path).is_file():
                continue  # a test made the code up, and gave it a name
            arcs = set(data.arcs(path) or ())
            self.arcs[path] |= arcs
            if path not in self.spans:
                self.spans[path] = functions(Path(path).read_text("utf-8"))
            lines = {line for arc in arcs for line in arc}
            places |= {
                (_relative(path), name): bits for name, bits in executed_in(self.spans[path], lines).items()
            }
        data.erase()
        return {place: bits for place, bits in places.items() if is_measured(REPOSITORY / place[0])}

    def pytest_sessionfinish(self) -> None:
        self._take()
        self.coverage.stop()
        where = execution_map.scratch()
        execution_map.keep(where, self.tests, self.left_out)
        data = CoverageData(basename=str(where / f"{branches.PART}{os.getpid()}"))
        data.add_arcs(self.arcs)
        data.write()


def _relative(path: str) -> str:
    return str(Path(path).relative_to(REPOSITORY)) if path.startswith(f"{REPOSITORY}/") else path


def pytest_configure(config: pytest.Config) -> None:
    """The first process of a session begins a new map; one that only gives tests to workers records
    nothing."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        shutil.rmtree(execution_map.scratch(), ignore_errors=True)
    if not config.getoption("numprocesses", None):
        config.pluginmanager.register(_recorder, "recorder")


# Before the product is imported: what runs at import is counted too.
_recorder = Recorder()
