"""Two sessions of pytest from one queue, and the bound of time."""

import sys
import time
from collections.abc import Mapping
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from deploy.config import REPOSITORY
from tests.changed import run as runs
from tests.changed import worker
from tests.changed.order import Portion
from tests.changed.run import NO_MORE_TESTS, Run, check, session

pytestmark = pytest.mark.process

# In two parts: it names no test of this repository.
INNER = f"{worker.TESTS}/inner"

CONFTEST = """
import pytest

@pytest.fixture(scope="session", autouse=True)
def made(request):
    assert request.session.items, "pytest-django looks there for the databases that are needed"
    with open(request.config.rootpath / "made", "a") as file:
        file.write("made once\\n")
"""
GOOD = "import pytest\n\n@pytest.mark.parametrize('n', range(3))\ndef test_good(n):\n    pass\n"
BAD = "def test_bad():\n    assert 'this' == 'that'\n\ndef test_other():\n    pass\n"
SLOW = "import time\n\ndef test_slow():\n    time.sleep(600)\n"
WRONG = "import no_such_module\n"


def lines(run: Run) -> str:
    assert isinstance(run.say, Said)
    return "\n".join(run.say.texts)


class Said:
    def __init__(self) -> None:
        self.texts: list[str] = []

    def __call__(self, text: str) -> None:
        self.texts.append(text)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One without Django: its sessions begin at once."""
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    (tmp_path / "tests" / "inner").mkdir(parents=True)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "tests" / "conftest.py").write_text(CONFTEST)
    for name, text in ((BAD, "bad"), (GOOD, "good"), (SLOW, "slow"), (WRONG, "wrong")):
        (tmp_path / "tests" / "inner" / f"test_{text}.py").write_text(name)
    return tmp_path


def test_two_sessions_share_the_queue_and_a_failure_is_said_at_once(repository: Path) -> None:
    good, bad = f"{INNER}/test_good.py", f"{INNER}/test_bad.py"
    run = Run(Said())
    run.order([Portion(good, (f"{good}::test_good[1]", f"{good}::test_gone")), Portion(bad), Portion(good)])
    threads = [Thread(target=session, args=(run, repository, ())) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert run.done == {
        *(f"{good}::test_good[{n}]" for n in range(3)),
        f"{bad}::test_bad",
        f"{bad}::test_other",
    }
    assert list(run.failed) == [f"{bad}::test_bad"] and "assert 'this' == 'that'" in lines(run)
    assert run.unfinished == []
    assert run.collected[bad] == {f"{bad}::test_bad", f"{bad}::test_other"}


def test_fixtures_of_the_session_are_made_once_for_all_portions(repository: Path) -> None:
    good, bad = f"{INNER}/test_good.py", f"{INNER}/test_bad.py"
    run = Run(Said())
    run.order([Portion(good, (f"{good}::test_good[1]",)), Portion(bad), Portion(good)])
    session(run, repository, ())

    assert (repository / "made").read_text() == "made once\n"


def test_a_file_that_cannot_be_imported_fails_and_the_others_go_on(repository: Path) -> None:
    run = Run(Said())
    run.order(
        [
            Portion(f"{INNER}/test_wrong.py"),
            Portion(f"{worker.TESTS}/gone/test_it.py"),
            Portion(f"{INNER}/test_bad.py"),
        ]
    )
    session(run, repository, ())

    assert list(run.failed) == [f"{INNER}/test_wrong.py", f"{INNER}/test_bad.py::test_bad"]


def test_markers_choose(repository: Path) -> None:
    run = Run(Said())
    run.order([Portion(f"{INNER}/test_bad.py"), Portion(f"{INNER}/test_good.py")])
    session(run, repository, ("-k", "other"))

    assert (
        run.done == {f"{INNER}/test_bad.py::test_other"} and run.collected[f"{INNER}/test_good.py"] == set()
    )


def test_nothing_is_taken_after_the_bound() -> None:
    now = [0.0]
    run = Run(Said(), lambda: now[0])
    run.order([Portion("one"), Portion("one", ("one::test_x",)), Portion("two")])

    assert run.take() == {"file": "one", "names": None, "without": ["one::test_x"]}
    now[0] = NO_MORE_TESTS - 0.1
    assert run.take() is not None
    now[0] = NO_MORE_TESTS
    assert run.take() is None and len(run.queue) == 1


def test_a_session_that_does_not_begin_is_a_failure_with_its_output(repository: Path) -> None:
    run = Run(Said())
    run.order([])
    session(run, repository, ("--no-such-option",))

    assert "--no-such-option" in lines(run) and run.failed


def test_a_test_that_is_running_at_the_bound_is_cut_off_and_no_failure(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offset = [0.0]
    run = Run(Said(), lambda: time.monotonic() + offset[0])
    hear = run.hear

    def hear_and_hurry(message: Mapping[str, Any]) -> None:
        hear(message)
        if "started" in message:
            offset[0] = runs.LIMIT

    monkeypatch.setattr(run, "hear", hear_and_hurry)
    run.order([Portion(f"{INNER}/test_slow.py")])
    session(run, repository, ())

    assert run.unfinished == [f"{INNER}/test_slow.py::test_slow"] and not run.failed and not run.done


def test_a_check_that_fails_says_why_and_one_without_time_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(Said(), lambda: 0.0)
    monkeypatch.setattr(
        runs, "CHECKS", (("lint", sys.executable, "-c", "raise SystemExit('line too long')"),)
    )
    check(run, Path.cwd())
    assert list(run.failed) == ["lint"] and "line too long" in lines(run)

    monkeypatch.setattr(runs, "CHECKS", (("types", sys.executable, "-c", "import time; time.sleep(600)"),))
    monkeypatch.setattr(runs, "LIMIT", 0.2)
    check(run, Path.cwd())
    assert run.unfinished == ["types"] and list(run.failed) == ["lint"]
