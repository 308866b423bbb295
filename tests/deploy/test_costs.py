"""Each run below is a session of pytest of its own."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from deploy.config import REPOSITORY
from tests import bounds, costs
from tests.costs import by_folder, by_kind, table

pytestmark = pytest.mark.process

# Bounds so small that a moment is too long.
CONFTEST = """
from tests import bounds, costs, markers

bounds.SECONDS |= {"pure": 0.05, "process": 100.0}

def pytest_configure(config):
    config.addinivalue_line("markers", "process: by hand")
    config.addinivalue_line("markers", "both_databases: by hand")
    config.pluginmanager.register(costs.Meter(), "costs")

def pytest_collection_modifyitems(items):
    markers.set_markers(items)
"""

COSTS = """
import time
import pytest

def work(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass

@pytest.fixture(scope="module")
def made():
    work(0.6)
    yield
    work(0.6)

def test_first_of_its_module(made):
    pass

def test_long():
    work(0.6)

@pytest.mark.process
def test_long_of_a_dearer_kind():
    work(0.6)
"""

REACHES = """
import socket, subprocess, sys, threading
import pytest

def start():
    subprocess.run([sys.executable, "--version"])

def connect():
    with socket.socket() as one:
        one.connect_ex(("127.0.0.1", 1))

def serve():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))

@pytest.mark.parametrize("reach", [start, connect, serve])
def test_pure(reach):
    reach()

@pytest.mark.process
@pytest.mark.parametrize("reach", [start, connect, serve])
def test_process(reach):
    reach()

go = threading.Event()
thread = threading.Thread(target=lambda: (go.wait(), connect()))

def test_that_leaves_a_thread():
    thread.start()

def test_during_which_it_connects():
    go.set()
    thread.join()
"""


def run(folder: Path, tests: str, *arguments: str, file: str = "test_it.py") -> tuple[int, str]:
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / file).write_text(tests)
    command = [sys.executable, "-m", "pytest", "-p", "no:django", "-p", "no:cacheprovider", "-c", os.devnull]
    answer = subprocess.run(
        [*command, "--rootdir", str(folder), *arguments, file],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(REPOSITORY), "MA_TEST_CACHE": str(folder), "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
    )
    return answer.returncode, answer.stdout + answer.stderr


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "workers"])
def test_a_run_fails_at_its_end_where_a_test_is_far_above_its_bound(
    tmp_path: Path, workers: tuple[str, ...]
) -> None:
    """What the module shares does not fall on the test that comes first."""
    code, said = run(tmp_path, COSTS, *workers)

    assert code == pytest.ExitCode.TESTS_FAILED and "3 passed" in said, said
    assert re.findall(r"^ERROR (.*): [\d.]+ s, the bound of pure is 0.05 s$", said, re.MULTILINE) == [
        "test_it.py::test_long"
    ]
    assert "dear: " not in said


def test_a_pure_test_that_reaches_out_fails_by_name(tmp_path: Path) -> None:
    """What a thread of the test before does is not of the next one."""
    code, said = run(tmp_path, REACHES)

    assert code == pytest.ExitCode.TESTS_FAILED and "3 failed, 5 passed" in said, said
    for reach, what in (
        ("start", "process: subprocess.Popen"),
        ("connect", "socket: socket.connect (('127.0.0.1', 1),)"),
        ("serve", "socket: socket.bind"),
    ):
        assert f"test_it.py::test_pure[{reach}] is pure, it reaches for a {what}" in said


def test_the_bound_is_that_of_the_kind_and_more_on_both_databases() -> None:
    assert bounds.bound("pure", both_databases=False) == 0.3
    assert bounds.bound("db", both_databases=True) == 2
    assert bounds.bound("broker", both_databases=True) == 5


def test_above_the_bound_a_test_is_named_and_far_above_it_fails_the_run() -> None:
    cost = {"kind": "db", "bound": 1.0}
    assert bounds.line("one", {**cost, "own": 1.0}) == ""
    assert bounds.line("one", {**cost, "own": 2.5}) == "dear: one: 2.5 s, the bound of db is 1 s"
    assert bounds.line("one", {**cost, "own": 4.5}) == "ERROR one: 4.5 s, the bound of db is 1 s"
    assert (
        bounds.line("one", {**cost, "own": 4.5, "kind": "kill"})
        == "dear: one: 4.5 s, the bound of kill is 1 s"
    )


def test_each_run_keeps_what_its_tests_cost_and_shows_the_slowest(tmp_path: Path) -> None:
    """What the first run measured is known after the second one, as long as the test is there."""
    folder = tmp_path / "checks" / "some"
    folder.mkdir(parents=True)
    for name in ("one", "two"):
        code, said = run(tmp_path, f"def test_{name}():\n    pass\n", file=f"checks/some/test_{name}.py")
        assert (
            code == pytest.ExitCode.OK and "the 1 slowest" in said and f"test_{name}.py::test_{name}" in said
        ), said

    for key, part in ((by_folder, "checks/some"), (by_kind, "pure")):
        ((database, found, items, wall, cpu, dear),) = table(tmp_path / "costs", key)
        assert (database, found, items, dear) == (costs.database(), part, 2, 0)
        assert wall >= 0 and cpu >= 0

    (folder / "test_two.py").unlink()
    run(tmp_path, "def test_one():\n    pass\n", file="checks/some/test_one.py")
    assert [row[2] for row in table(tmp_path / "costs", by_folder)] == [1]
