"""The spool keeps what it was given, once, whatever happens to its process."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from contract.records import Closing, MessageIdentity, RecordRun, Recovered, RunState
from kma.spool.__main__ import main, summary
from kma.spool.file import SpoolFile
from kma.spool.journal import Totals
from kma.spool.ledger import CarriedCounts, Ledger, Progress
from kma.spool.records import New, Spool

RUN = RecordRun("orders", UUID(int=1), 1, "srv-1", "demo.orders")
NOW = datetime(2026, 7, 1, tzinfo=UTC)


@pytest.fixture
def file(tmp_path: Path) -> Iterator[SpoolFile]:
    one = SpoolFile(tmp_path / "spool.sqlite3")
    yield one
    one.close()


def new(identity: UUID | None = None) -> New:
    return New("run", Recovered(RUN, MessageIdentity(key="ID:1"), NOW), identity or uuid4())


def test_numbers_grow_by_one_and_are_never_given_again(file: SpoolFile) -> None:
    spool = Spool(file, 10**6)
    spool.append([new(), new()])
    spool.taken(2)
    spool.append([new()])
    assert [record.number for record in spool.head(10, 10**6)] == [3]


def test_a_record_made_again_has_no_effect_also_when_it_was_taken(file: SpoolFile) -> None:
    spool, ledger = Spool(file, 10**6), Ledger(file)
    ledger.open_run("run", {})
    same = new()
    spool.append([same])
    spool.append([same, new()])
    spool.taken(2)
    spool.append([same])
    stored = ledger.run("run")
    assert stored is not None and stored.records == 2
    assert spool.report().rows == 0


def test_all_of_an_append_is_stored_or_nothing(file: SpoolFile) -> None:
    spool = Spool(file, 10**6)
    with pytest.raises(sqlite3.Error):
        spool.append([new()], attempts=[("orders", "ID:1", None)])  # type: ignore[list-item]  # what the test is about
    assert spool.head(10, 10**6) == [] and spool.report().rows == 0


def test_bytes_are_counted_and_the_bound_is_told(file: SpoolFile) -> None:
    spool = Spool(file, 2000)
    while not spool.full:
        spool.append([new()])
    again = Spool(file, 2000)
    assert again.report() == spool.report() and again.full
    spool.taken(spool.last_number())
    assert (spool.full, spool.report().bytes, spool.report().rows) == (False, 0, 0)


def test_a_batch_is_bounded_in_bytes_but_never_empty(file: SpoolFile) -> None:
    spool = Spool(file, 10**6)
    spool.append([new() for _ in range(5)])
    assert len(spool.head(10, 1)) == 1
    assert len(spool.head(3, 10**6)) == 3


def test_a_run_is_closed_once_by_its_last_record(file: SpoolFile) -> None:
    spool, ledger = Spool(file, 10**6), Ledger(file)
    ledger.open_run("run", {"run": {}})
    spool.append([new()])
    for _ in range(2):
        closing = Closing(RUN, RunState.FINISHED, 1, 1, 0, 0, 0, NOW)
        spool.close_run(New("run", closing, uuid4()))
    assert [record.kind for record in spool.head(10, 10**6)] == ["recovered", "closing"]
    assert ledger.unclosed() == []


def test_totals_and_counts_outlive_the_process(file: SpoolFile) -> None:
    ledger = Ledger(file)
    ledger.open_run("run", {})
    ledger.note(Progress("run", "orders", Totals(handled=7, successes=3), CarriedCounts()))
    assert Ledger(file).open_run("run", {}).totals == Totals(handled=7, successes=3)


def test_known_attempts_only_grow_until_they_are_forgotten(file: SpoolFile) -> None:
    spool = Spool(file, 10**6)
    spool.append([], attempts=[("orders", "ID:1", 3), ("other", "ID:1", 1)])
    spool.append([], attempts=[("orders", "ID:1", 2)])
    assert spool.attempts("orders") == {"ID:1": 3}
    spool.append([], forget=[("orders", "ID:1")])
    assert spool.attempts("orders") == {} and spool.attempts("other") == {"ID:1": 1}


@pytest.mark.kill
@pytest.mark.process
def test_what_append_has_returned_from_survives_a_kill(tmp_path: Path) -> None:
    code = (
        "import sys, os; from pathlib import Path\n"
        "from tests.kma.spool.test_spool import new, Spool, SpoolFile\n"
        "spool = Spool(SpoolFile(Path(sys.argv[1])), 10**9)\n"
        "while True:\n"
        "    spool.append([new()]); os.write(1, b'.')\n"
    )
    path = tmp_path / "spool.sqlite3"
    with subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        done = len(process.stdout.read(50))
        process.send_signal(signal.SIGKILL)
        done += len(process.stdout.read())
    file = SpoolFile(path)
    assert Spool(file, 10**9).report().rows in (done, done + 1)
    file.close()


@pytest.mark.process
def test_anybody_can_look_at_a_spool_while_it_is_used(file: SpoolFile, tmp_path: Path) -> None:
    spool, ledger = Spool(file, 10**6), Ledger(file)
    ledger.open_run("run", {})
    spool.append([new()])
    seen = summary(tmp_path / "spool.sqlite3")
    assert (seen["rows"], seen["kinds"], seen["last"]) == (1, {"recovered": 1}, 1)
    command = [sys.executable, "-m", "kma.spool", str(tmp_path / "spool.sqlite3")]
    assert json.loads(subprocess.run(command, capture_output=True, check=True).stdout)["rows"] == 1
    assert subprocess.run([*command, "x"], capture_output=True, check=False).returncode == 2


def test_its_records_can_be_read_one_by_one(
    file: SpoolFile, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spool, path = Spool(file, 10**6), str(tmp_path / "spool.sqlite3")
    spool.append([new(UUID(int=n)) for n in (1, 2, 3)])
    spool.put_aside(1, "the MA does not want it")

    assert main([path, "--records", "1"]) == 0
    [record] = map(json.loads, capsys.readouterr().out.splitlines())
    assert (record["number"], record["id"], record["kind"]) == (2, str(UUID(int=2)), "recovered")
    assert record["content"]["message"]["key"] == "ID:1" and record["since"].endswith("Z")
    assert main([path, "--refused", "9"]) == 0
    [refused] = map(json.loads, capsys.readouterr().out.splitlines())
    assert (refused["number"], refused["reason"]) == (1, "the MA does not want it")
    assert spool.report().rows == 2, "nothing has changed"


def test_what_is_no_spool_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = tmp_path / "other"
    other.write_text("no database at all, and longer than a header of SQLite has to be" * 10)
    assert main([str(other)]) == 1
    assert "not a readable spool" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main([str(tmp_path / "missing")])


def test_a_disk_that_takes_nothing_is_found_out_and_tried_again(file: SpoolFile) -> None:
    spool = Spool(file, 10**9)
    may_grow_to(file, 1)
    with pytest.raises(sqlite3.OperationalError):
        spool.append([new() for _ in range(200)])
    assert spool.full and spool.report().full and "disk is full" in str(spool.problem)
    spool.try_again()
    assert spool.full
    may_grow_to(file, 2**30)
    spool.try_again()
    assert (spool.full, spool.problem, spool.report().rows) == (False, None, 0)
    spool.append([new()])
    assert spool.last_number() == 1


def test_a_mistake_of_ours_is_no_matter_of_the_disk(file: SpoolFile) -> None:
    spool = Spool(file, 10**6)
    with pytest.raises(sqlite3.IntegrityError):
        spool.append([new()], attempts=[("orders", "ID:1", None)])  # type: ignore[list-item]  # what the test is about
    assert not spool.full


def may_grow_to(file: SpoolFile, pages: int) -> None:
    """Not beyond what it has already. SQLite has one answer for this and for a full disk."""
    with file.reading() as connection:
        connection.execute(f"PRAGMA max_page_count = {pages}").fetchall()


def test_only_its_owner_can_read_it(file: SpoolFile, tmp_path: Path) -> None:
    assert os.stat(tmp_path / "spool.sqlite3").st_mode & 0o077 == 0
