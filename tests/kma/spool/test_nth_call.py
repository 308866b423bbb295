"""Each call of the spool to the disk fails once: what was said to be stored is there, once, and the rest can
follow."""

import errno
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from uuid import UUID

import pytest

from contract.records import Closing, MessageIdentity, RecordRun, Recovered, RunState
from kma.spool.file import SpoolFile
from kma.spool.journal import Totals
from kma.spool.ledger import CarriedCounts, Ledger, Progress, run_key
from kma.spool.records import New, Spool
from tests.kit.failing_calls import SHORT, Fault, Outcome, each_nth

RUN = RecordRun("orders", UUID(int=1), 1, "srv-1", "demo.orders")
KEY = run_key(RUN.activation, RUN.epoch)
NOW = datetime(2026, 7, 1, tzinfo=UTC)
LIMIT = 10**6
pytestmark = pytest.mark.process

FAULTS = [
    Fault("write", errno.ENOSPC),
    Fault("write", errno.EIO),
    Fault("write", SHORT),
    Fault("write", errno.ENOSPC, lasting=True),
    Fault("sync", errno.EIO),
    Fault("sync", errno.ENOSPC, lasting=True),
    Fault("open", errno.ENOSPC),
    Fault("open", errno.EMFILE),
    Fault("room", errno.EIO),
    Fault("unlink", errno.EIO),
]


def record(number: int) -> New:
    return New(KEY, Recovered(RUN, MessageIdentity(key=f"ID:{number}"), NOW), UUID(int=number))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A spool that was used and closed: records 1 and 2 wait."""
    path = tmp_path_factory.mktemp("made") / "spool.sqlite3"
    file = SpoolFile(path)
    Ledger(file).open_run(KEY, {"run": {}})
    Spool(file, LIMIT, keep_seconds=60).append([record(1), record(2)])
    file.close()
    return path


@pytest.fixture
def memory() -> Iterator[Path]:
    """A file system without a disk: the calls are the same, and none of them waits."""
    with TemporaryDirectory(dir="/dev/shm") as folder:
        yield Path(folder)


class Did(NamedTuple):
    """Names of steps that returned, and what those said that did not."""

    done: list[str]
    errors: list[str]


class Steps:
    """What a KMA does with its spool, each step tried a second time after an error, as the KMA does."""

    def __init__(self, path: Path, repair: Callable[[], None], *, again: bool) -> None:
        self._path, self._repair, self._again = path, repair, again
        self.errors: list[str] = []
        self.done: list[str] = []

    def run(self) -> Did:
        try:
            file = self._step("open", lambda: SpoolFile(self._path))
            spool = self._step("count", lambda: Spool(file, LIMIT, keep_seconds=60))
            ledger = self._step("ledger", lambda: Ledger(file))
            for name, step in _steps(spool, ledger):
                self._step(name, step, lambda: self._is_as_on_disk(file, spool))
            file.close()
        except sqlite3.Error:
            if self._again:
                raise
        return Did(self.done, self.errors)

    def _step(self, name: str, step: Callable[[], Any], check: Callable[[], None] = lambda: None) -> Any:
        try:
            found = step()
        except sqlite3.Error as error:
            self.errors.append(f"{name}: {error}")
            if not self._again:
                raise  # and the process ends here
            self._repair()
            check()
            found = step()
        self.done.append(name)
        return found

    def _is_as_on_disk(self, file: SpoolFile, spool: Spool) -> None:
        spool.try_again()
        assert not spool.problem
        assert spool.report() == Spool(file, LIMIT, keep_seconds=60).report()


def _steps(spool: Spool, ledger: Ledger) -> list[tuple[str, Callable[[], Any]]]:
    progress = Progress(KEY, "orders", Totals(handled=7, successes=3), CarriedCounts(failures=2))
    closing = New(KEY, Closing(RUN, RunState.FINISHED, 7, 2, 0, 0, 0, NOW), UUID(int=9))
    return [
        ("run", lambda: ledger.open_run(KEY, {"run": {}})),
        (
            "append",
            lambda: spool.append([record(3), record(4)], attempts=[("orders", "ID:3", 2)], progress=progress),
        ),
        ("taken", lambda: spool.taken(1)),
        ("aside", lambda: spool.put_aside(2, "not wanted")),
        ("more", lambda: spool.append([record(5)], forget=[("orders", "ID:3")])),
        ("close", lambda: spool.close_run(closing)),
    ]


def check(outcome: Outcome) -> None:
    """After a restart: what was done is there. Then all steps once more, as whoever does not know what was
    done."""
    assert outcome.error is None, outcome
    steps: Did = outcome.result
    for attempt in range(2):
        file = SpoolFile(outcome.folder / "spool.sqlite3")
        with file.reading() as connection:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)], outcome
        spool, ledger = Spool(file, LIMIT, keep_seconds=60), Ledger(file)
        done = [name for name, _ in _steps(spool, ledger)] if attempt else steps.done
        known = {one for one in (3, 4, 5, 9) if spool.knows(UUID(int=one))}
        assert {3, 4} <= known if "append" in done else known & {3, 4} in (set(), {3, 4}), outcome
        assert spool.knows(UUID(int=1)), outcome
        assert spool.set_aside() == 1 or "aside" not in done, outcome
        assert 5 in known or "more" not in done, outcome
        stored = ledger.run(KEY)
        assert stored is not None and ((stored.closed and 9 in known) or "close" not in done), outcome
        assert stored.records == len(known) + 2, outcome
        assert (stored.totals.handled, ledger.carried("orders").failures) == (
            (7, 2) if 3 in known else (0, 0)
        ), outcome
        numbers = [one.number for one in spool.head(100, LIMIT)]
        assert numbers == sorted(set(numbers)), outcome
        assert 1 not in numbers or "taken" not in done, outcome
        if not attempt:
            for _, step in _steps(spool, ledger):
                step()
        file.close()


@pytest.mark.parametrize("again", [True, False], ids=["again", "restart"])
@pytest.mark.parametrize("fault", FAULTS, ids=str)
def test_what_was_said_to_be_stored_is_there_once(
    memory: Path, made: Path, fault: Fault, again: bool
) -> None:
    errors = 0

    def scenario(folder: Path, repair: Callable[[], None]) -> Did:
        return Steps(folder / "spool.sqlite3", repair, again=again).run()

    for outcome in each_nth(memory, fault, scenario, before=lambda folder: shutil.copy(made, folder)):
        check(outcome)
        errors += bool(outcome.result.errors)
        assert outcome.failed or not outcome.result.errors
    assert errors or fault.error == SHORT or fault.calls == "unlink", "somebody was told"
