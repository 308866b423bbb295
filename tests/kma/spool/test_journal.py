"""The journal of starts, read after real kills."""

import errno
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from contract.breaker import Counts
from contract.records import RecordRun
from contract.wire import dump
from kma.delivery.in_flight import identity_bytes
from kma.delivery.message_identity import identify
from kma.host.recovery import recover_all
from kma.spool.file import SpoolFile
from kma.spool.journal import IDENTITY, ROOM, Journal, JournalDamaged, Totals
from kma.spool.ledger import CarriedCounts, Ledger, Progress, run_key
from kma.spool.records import Spool
from tests.kma.fakes import message

RUN = RecordRun("orders", UUID(int=7), 3, "srv-1", "demo.orders", "1")
ABOUT = {"run": dump(RUN), "queue": "orders", "destination": "demo.orders", "masked": ["card"]}
RECORD = UUID(int=99).bytes


@dataclass
class Shelf:
    """A folder of journals with a spool beside them."""

    folder: Path
    file: SpoolFile
    spool: Spool
    ledger: Ledger

    def journal(self, name: str = "a") -> Journal:
        return Journal.create(self.folder / f"{name}.journal", ABOUT, 4)

    def recover(self) -> int:
        return recover_all(self.folder, self.spool, self.ledger).total()

    def contents(self) -> list[dict[str, object]]:
        return [dict(record.content) for record in self.spool.head(100, 10**7)]


@pytest.fixture
def shelf(tmp_path: Path) -> Iterator[Shelf]:
    file = SpoolFile(tmp_path / "spool.sqlite3")
    yield Shelf(tmp_path, file, Spool(file, 10**7), Ledger(file))
    file.close()


OF_OTHER_VERSIONS = (
    '{"successes": "4", "count": 1}',
    '{"successes": 4, "activation": "a", "counts": {"same": "1"}}',
    "[]",
    "{",
)


@pytest.mark.parametrize("state", OF_OTHER_VERSIONS)
def test_what_another_version_carried_is_nothing_carried(shelf: Shelf, state: str) -> None:
    with shelf.file.transaction() as connection:
        connection.execute("INSERT INTO settings VALUES ('orders', ?)", (state,))
    assert shelf.ledger.carried("orders") == CarriedCounts()
    carried = CarriedCounts(1, 2, "a", 3, Counts("KeyError", 1, 1, ("ab",)), (UUID(int=4),), True)
    shelf.ledger.note(Progress("a/3", "orders", Totals(), carried))
    assert shelf.ledger.carried("orders") == carried


def test_only_what_began_and_did_not_end_becomes_a_protocol(shelf: Shelf) -> None:
    journal = shelf.journal()
    for slot, identity in enumerate(("ID:sent", "ID:started", "ID:finished", "ID:freed")):
        journal.claim(slot, uuid4().bytes, 2, 1, slot, message("x", identity=identity))
    for slot in (1, 2, 3):
        assert journal.begin(slot, 4242)
    journal.finish(2)
    journal.free(3)
    key = run_key(RUN.activation, RUN.epoch)
    shelf.ledger.open_run(key, {"run": dump(RUN)})
    counted = CarriedCounts(0, 7, str(RUN.activation), RUN.epoch, Counts("KeyError", 1, 1), (UUID(int=4),))
    shelf.ledger.note(Progress(key, "orders", Totals(6, 1, 0, 0, 0, 7), counted))
    journal.write_totals(Totals(handled=10, failed=1, successes=4, since=7))
    journal.close()
    assert shelf.recover() == 1
    (protocol,) = shelf.contents()
    assert protocol["outcome"] == "kma_died" and protocol["exception_type"] == "kma died"
    assert protocol["message"]["key"] == "ID:started" and protocol["message"]["attempt"] == 2  # type: ignore[index]
    assert (protocol["counted"], protocol["last_attempt"], protocol["process_id"]) == (False, False, 4242)
    assert protocol["successes_before"] == 4
    assert shelf.spool.attempts("orders") == {"ID:started": 2}
    stored = shelf.ledger.run(key)
    assert stored is not None and (stored.records, stored.totals.handled, stored.totals.failed) == (1, 10, 2)
    assert shelf.ledger.carried("orders") == CarriedCounts(4, 7, str(RUN.activation), RUN.epoch), (
        "a success came after it"
    )
    assert not list(shelf.folder.glob("*.journal"))


def test_a_protocol_that_reached_the_spool_is_not_joined_by_a_second(shelf: Shelf) -> None:
    """Killed between the append and the release of the slot; then killed again in the middle of the
    recovery."""
    journal = shelf.journal()
    journal.claim(0, RECORD, 1, 0, 1, message("x", identity="ID:1"))
    journal.begin(0, 1)
    journal.close()
    copy = (shelf.folder / "a.journal").read_bytes()
    assert shelf.recover() == 1
    (shelf.folder / "a.journal").write_bytes(copy)
    shelf.spool.taken(shelf.spool.last_number())
    assert shelf.recover() == 0
    assert shelf.contents() == [], "the same record id: the MA has it already"
    stored = shelf.ledger.run(run_key(RUN.activation, RUN.epoch))
    assert stored is not None and (stored.records, stored.totals.failed) == (1, 1)


@pytest.mark.parametrize("names", ["of version 4", "of version 3"])
def test_a_message_too_large_for_a_slot_is_known_by_its_identity(shelf: Shelf, names: str) -> None:
    """Also to a container that was upgraded after it was killed."""
    encoded = message("x" * 100_000, identity="ID:large")
    data = identity_bytes(identify(encoded))
    assert len(encoded) > ROOM >= len(data)
    if names == "of version 3":
        data = data.replace(b'"dead_letter_', b'"letter_')
    journal = shelf.journal()
    journal.claim(0, RECORD, 1, 0, 1, data, IDENTITY)
    journal.begin(0, 1)
    journal.close()
    shelf.recover()
    (protocol,) = shelf.contents()
    assert protocol["message"]["key"] == "ID:large"  # type: ignore[index]
    assert protocol["message"]["body_size"] == 100_000  # type: ignore[index]
    assert protocol["message"]["replayed"] is False  # type: ignore[index]


def test_a_damaged_journal_is_put_aside_and_stops_nothing(shelf: Shelf) -> None:
    (shelf.folder / "short.journal").write_bytes(b"KMA")
    (shelf.folder / "zeros.journal").write_bytes(bytes(100_000))
    assert shelf.recover() == 0
    assert len(list(shelf.folder.glob("*.damaged-*"))) == 2
    with pytest.raises(JournalDamaged):
        Journal.open(next(shelf.folder.glob("zeros.damaged-*")))


def test_a_journal_that_cannot_be_opened_now_is_kept_and_told_at_the_next_start(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = shelf.journal()
    journal.claim(0, RECORD, 1, 0, 1, message("x", identity="ID:1"))
    journal.begin(0, 1)
    journal.close()

    def fails(path: Path) -> Journal:
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as patched:
        patched.setattr(Journal, "open", fails)
        assert shelf.recover() == 0 and shelf.contents() == []
    assert shelf.recover() == 1
    assert len(shelf.contents()) == 1 and list(shelf.folder.glob("*journal*")) == []


def test_a_message_that_was_taken_back_is_never_begun(shelf: Shelf) -> None:
    journal = shelf.journal()
    journal.claim(0, RECORD, 1, 0, 1, b"x")
    assert journal.recall(0)
    assert not journal.begin(0, 1)
    journal.claim(1, RECORD, 1, 0, 1, b"x")
    assert journal.begin(1, 1)
    assert not journal.recall(1), "too late"
    journal.close()
    assert shelf.recover() == 1


def test_of_recall_and_begin_exactly_one_wins_a_race(shelf: Shelf) -> None:
    journal = shelf.journal()
    results: dict[str, bool] = {}
    for _ in range(500):
        journal.claim(0, RECORD, 1, 0, 1, b"x")
        barrier = threading.Barrier(2)

        def recall(gate: threading.Barrier = barrier) -> None:
            gate.wait()
            results["recalled"] = journal.recall(0)

        thread = threading.Thread(target=recall)
        thread.start()
        barrier.wait()
        results["begun"] = journal.begin(0, 1)
        thread.join()
        # Both may lose: then the child answers that it skipped the message, and the parent has it again.
        assert not (results["recalled"] and results["begun"])
    journal.close()


@pytest.mark.kill
@pytest.mark.process
def test_what_a_killed_process_wrote_is_there(shelf: Shelf) -> None:
    journal = shelf.journal()
    journal.claim(0, RECORD, 1, 0, 1, message("x", identity="ID:1"))
    code = (
        "import os, sys, time; from kma.spool.journal import Journal\n"
        "journal = Journal.attach(int(sys.argv[1]))\n"
        "assert journal.begin(0, os.getpid()); os.write(1, b'begun'); time.sleep(60)\n"
    )
    command = [sys.executable, "-c", code, str(journal.file)]
    with subprocess.Popen(command, pass_fds=(journal.file,), stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.read(5) == b"begun"
        process.send_signal(signal.SIGKILL)
    journal.close()
    assert shelf.recover() == 1
    assert shelf.contents()[0]["process_id"] == process.pid
    assert process.pid != os.getpid()
