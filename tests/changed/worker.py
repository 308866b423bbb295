"""A plugin of pytest: asks for portions of tests, imports their files only then, and reports each test at
once.

Collecting all tests takes longer than most changes need until their first failure."""

import json
import os
import socket
import time
from collections.abc import Iterator, Sequence
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import pytest
from _pytest.runner import collect_one_node

CONNECTION, UNTIL = "MA_TEST_CONNECTION", "MA_TEST_UNTIL"
TESTS = "tests"


def pytest_configure(config: pytest.Config) -> None:
    connection = socket.socket(fileno=int(os.environ[CONNECTION]))
    connection.set_inheritable(False)
    config.pluginmanager.register(Worker(connection, float(os.environ[UNTIL])), "portions")


class Worker:
    def __init__(self, connection: socket.socket, until: float) -> None:
        self.stream = connection.makefile("rw")
        self.until = until
        self.nodes: dict[Path, Any] = {}
        self.collected: set[Path] = set()
        self.waiting: dict[str, dict[str, pytest.Item]] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self, session: pytest.Session) -> bool:
        """Nothing yet; `_items` does it."""
        session.items = []
        return True

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """The next item is known before one runs: fixtures of the session stay for it."""
        for item, following in pairwise(chain(self._items(session), [None])):
            assert item is not None
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        return True

    def _items(self, session: pytest.Session) -> Iterator[pytest.Item]:
        while portion := self._ask():
            file, names = portion["file"], portion["names"]
            if file not in self.waiting:
                self.waiting[file] = self._collect(session, file)
            waiting = self.waiting[file]
            for name in list(waiting) if names is None else names:
                if name in portion["without"] or name not in waiting:
                    continue
                if time.monotonic() > self.until:
                    return
                yield waiting.pop(name)

    def _ask(self) -> dict[str, Any] | None:
        self._send(want="portion")
        answer: dict[str, Any] | None = json.loads(self.stream.readline() or "null")
        return answer

    def _send(self, **message: object) -> None:
        self.stream.write(json.dumps(message) + "\n")
        self.stream.flush()

    def _collect(self, session: pytest.Session, file: str) -> dict[str, pytest.Item]:
        """Those that the marker expression chooses."""
        items: list[pytest.Item] = []
        if (node := self._node(session, session.config.rootpath / file)) is not None:
            items = list(session.genitems(node))
            session.config.hook.pytest_collection_modifyitems(
                session=session, config=session.config, items=items
            )
            session.testscollected += len(items)
            session.items.extend(items)  # pytest-django looks in there for the databases that are needed
        self._send(collected=file, names=[item.nodeid for item in items])
        return {item.nodeid: item for item in items}

    def _node(self, session: pytest.Session, path: Path) -> Any:
        """Each folder is collected once: fixtures of a conftest belong to the node of its folder."""
        if path == session.config.rootpath / TESTS and path not in self.nodes:
            hook = session.gethookproxy(path)
            self.nodes[path] = hook.pytest_collect_directory(path=path, parent=session)
        elif path not in self.nodes and path.parent not in self.collected:
            self.collected.add(path.parent)
            if (folder := self._node(session, path.parent)) is not None:
                report = collect_one_node(folder)
                self.pytest_collectreport(report)
                self.nodes |= {node.path: node for node in report.result}
        return self.nodes.get(path)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._send(failed=report.nodeid, text=report.longreprtext)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._send(started=nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._send(failed=report.nodeid, text=report.longreprtext, sections=_sections(report.sections))
        if report.when == "teardown":
            self._send(done=report.nodeid)


def _sections(sections: Sequence[tuple[str, str]]) -> str:
    return "\n".join(f"-- {name}\n{text}" for name, text in sections)
