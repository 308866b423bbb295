"""Records on their way to the MA: in order, once, whatever it answers."""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from contract.messages import VERSION
from contract.records import MessageIdentity, RecordRun, Recovered
from kma.host.reporter import Pause, Reporter, larger
from kma.ma_client import Endpoint, MaClient, asked_pause
from kma.spool.file import SpoolFile
from kma.spool.records import New, Spool
from tests.kma.fake_ma import FakeMa
from tests.kma.fakes import eventually

RUN = RecordRun("orders", UUID(int=1), 1, "srv-1", "demo.orders")


class Desk:
    """A spool, its reporter and the MA."""

    def __init__(self, folder: Path, ma: FakeMa, token: str = "kma_secret", keep_seconds: float = 0) -> None:
        self.file = SpoolFile(folder / "spool.sqlite3")
        self.spool = Spool(self.file, 1_000_000, keep_seconds)
        self.client = MaClient(Endpoint(ma.url, "srv-1", token))
        self.reporter = Reporter(self.client, self.spool, "srv-1")

    def add(self, number: int) -> None:
        content = Recovered(RUN, MessageIdentity(key=f"ID:{number}"), datetime.now(UTC))
        self.spool.append([New("run", content, uuid4()) for _ in range(number)])

    def steps(self, number: int) -> list[float]:
        return [self.reporter.step() for _ in range(number)]

    def close(self) -> None:
        self.client.close()
        self.file.close()


@pytest.fixture
def desk(tmp_path: Path, ma: FakeMa) -> Iterator[Desk]:
    one = Desk(tmp_path, ma)
    yield one
    one.close()


def test_records_arrive_in_order_and_leave_the_spool(desk: Desk, ma: FakeMa) -> None:
    desk.add(1200)
    desk.steps(3)
    assert [len(batch) for batch in ma.batches] == [500, 500, 200]
    assert [record["number"] for batch in ma.batches for record in batch] == list(range(1, 1201))
    assert desk.spool.report().rows == 0
    assert desk.reporter.step() == Reporter.IDLE


def test_each_batch_may_reach_another_process_of_the_site(desk: Desk, ma: FakeMa) -> None:
    """A connection that is kept stays with the process that took it: with few KMAs one does all, the others
    nothing."""
    desk.add(600)
    desk.steps(2)
    assert ma.connections == [("/api/v1/protocols/", "close")] * 2


def test_an_answer_that_was_lost_makes_nothing_twice(desk: Desk, ma: FakeMa) -> None:
    desk.add(3)
    spool = str(desk.spool.id)
    ma.marks[spool] = 3  # stored, but the answer never arrived
    desk.steps(1)
    assert ma.records == {} and desk.spool.report().rows == 0


def test_a_batch_that_is_too_large_is_halved(desk: Desk, ma: FakeMa) -> None:
    ma.largest = 60
    desk.add(200)
    desk.steps(12)
    assert len(ma.records) == 200
    assert max(len(batch) for batch in ma.batches) <= 60


def test_a_single_record_that_is_too_large_does_not_block_the_next(desk: Desk, ma: FakeMa) -> None:
    desk.add(2)
    ma.answers = [(413, {}, {}), (413, {}, {})]
    desk.steps(3)
    assert [record["number"] for record in ma.records.values()] == [2]
    assert desk.spool.set_aside() == 1


def test_a_record_that_the_ma_refuses_is_kept_aside_and_the_rest_goes_on(desk: Desk, ma: FakeMa) -> None:
    ma.refuse = {2}
    desk.add(3)
    desk.steps(1)
    assert len(ma.records) == 2
    assert (desk.spool.report().rows, desk.spool.set_aside()) == (0, 1)


def test_a_batch_that_is_not_understood_is_taken_apart_to_the_record_that_is_wrong(
    desk: Desk, ma: FakeMa
) -> None:
    desk.add(4)
    ma.answers = [(400, {}, {})] * 5
    for _ in range(20):
        desk.reporter.step()
    assert len(ma.records) == 3 and desk.spool.set_aside() == 1


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_token_keeps_everything_and_is_shown(tmp_path: Path, ma: FakeMa, status: int) -> None:
    desk = Desk(tmp_path, ma, token="kma_wrong")
    desk.add(1)
    if status == 401:
        desk.client._session.headers["Authorization"] = "Bearer kma_secret"
        ma.answers = [(401, {}, {})]
    assert desk.reporter.step() >= 30
    assert str(status) in str(desk.reporter.problem)
    assert desk.spool.report().rows == 1
    desk.close()


def test_the_ma_being_away_keeps_everything_with_growing_pauses(desk: Desk, ma: FakeMa) -> None:
    desk.add(100)
    ma.down = True
    waits = desk.steps(8)
    assert all(wait > 0 for wait in waits) and max(waits) <= 30
    assert "503" in str(desk.reporter.problem)
    ma.down = False
    desk.steps(1)
    assert len(ma.records) == 100 and desk.reporter.problem is None


def test_an_ma_of_another_version_keeps_everything(desk: Desk, ma: FakeMa) -> None:
    desk.add(2)
    ma.answers = [(400, {}, {"error": "unsupported_version"})] * 10
    assert all(wait > 0 for wait in desk.steps(10))
    assert "upgrade" in str(desk.reporter.problem)
    assert (desk.spool.report().rows, desk.spool.set_aside()) == (2, 0)


def test_a_batch_says_when_it_is_sent_by_the_clock_of_its_server(desk: Desk, ma: FakeMa) -> None:
    desk.add(1)
    before = datetime.now(UTC)
    desk.steps(1)
    assert before <= datetime.fromisoformat(ma.last_batch["sent_at"]) <= datetime.now(UTC)
    assert ma.last_batch["version"] == VERSION


def test_what_the_ma_asks_for_is_waited(desk: Desk, ma: FakeMa) -> None:
    desk.add(1)
    ma.answers = [(429, {"Retry-After": "7"}, {}), (503, {"Retry-After": "100000"}, {})]
    assert desk.reporter.step() >= 7
    assert desk.reporter.step() == 300


def test_an_answer_that_is_no_answer_of_the_ma_changes_nothing(desk: Desk, ma: FakeMa) -> None:
    desk.add(1)
    ma.answers = [
        (200, {}, {"stored_up_to": "all"}),
        (200, {}, ["hello"]),
        (302, {"Location": "/login/"}, {}),
    ]
    assert all(wait > 0 for wait in desk.steps(3))
    assert desk.spool.report().rows == 1


def test_a_spool_that_was_put_back_from_a_copy_takes_a_new_identity(desk: Desk, ma: FakeMa) -> None:
    desk.add(2)
    old = desk.spool.id
    ma.marks[str(old)] = 900
    desk.steps(2)
    assert desk.spool.id != old
    assert len(ma.records) == 2, "its records are not taken for known"
    assert ma.last_batch["first"] == 1


def test_under_its_new_identity_a_spool_says_where_it_begins(keeping: Desk, ma: FakeMa) -> None:
    keeping.add(5)
    keeping.steps(1)
    keeping.add(2)
    ma.marks[str(keeping.spool.id)] = 900
    keeping.steps(2)
    assert (ma.last_batch["first"], ma.last_batch["after"], len(ma.records)) == (6, None, 7)


def test_a_reporter_that_fails_says_so_until_it_goes_on(
    desk: Desk, ma: FakeMa, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kma.host.reporter.LONGEST_PAUSE", 0.05)
    with monkeypatch.context() as broken:
        broken.setattr(desk.spool, "head", lambda *_: 1 / 0)
        desk.reporter.start()
        eventually(lambda: "ZeroDivisionError" in str(desk.reporter.problem), "the problem")
    eventually(lambda: desk.reporter.problem is None, "the end of it")
    desk.reporter.stop(drain_seconds=0)


def test_retry_after_is_read_in_both_forms() -> None:
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=20), usegmt=True)
    assert asked_pause("5") == 5
    assert 15 < (asked_pause(soon) or 0) <= 20
    assert asked_pause("Mon, 01 Jan 2001 00:00:00 GMT") == 0
    assert asked_pause("soon") is None and asked_pause(None) is None and asked_pause("") is None


def test_pauses_grow_to_a_bound_and_begin_anew_after_a_success() -> None:
    pause = Pause(draw=lambda least, most: most)
    assert [pause.next() for _ in range(8)] == [0.5, 1, 2, 4, 8, 16, 30, 30]
    pause.reset()
    assert pause.next() == 0.5
    assert pause.next(asked=60) == 60


def test_a_pause_ends_when_the_ma_is_heard_again(desk: Desk, ma: FakeMa) -> None:
    ma.answers = [(503, {"Retry-After": "300"}, None)]
    desk.add(1)
    desk.reporter.start()
    while not desk.reporter.problem:
        time.sleep(0.01)
    desk.reporter.wake()
    while desk.spool.report().rows:
        time.sleep(0.01)
    desk.reporter.stop(drain_seconds=0)
    assert len(ma.records) == 1


@pytest.fixture
def keeping(tmp_path: Path, ma: FakeMa) -> Iterator[Desk]:
    """A KMA that keeps for an hour what was taken."""
    one = Desk(tmp_path, ma, keep_seconds=3600)
    yield one
    one.close()


def test_what_the_ma_has_lost_is_sent_again(keeping: Desk, ma: FakeMa) -> None:
    keeping.add(20)
    keeping.steps(1)
    ma.lose(str(keeping.spool.id), after=12)
    keeping.add(3)
    keeping.steps(3)
    assert [record["number"] for record in ma.records.values()] == [*range(1, 24)]
    assert keeping.spool.report().rows == 0


def test_what_the_ma_has_lost_is_sent_again_before_anything_new_happens(keeping: Desk, ma: FakeMa) -> None:
    keeping.add(20)
    keeping.steps(1)
    ma.lose(str(keeping.spool.id), after=0)
    keeping.reporter.send_again(0, 20)
    keeping.steps(2)
    assert [record["number"] for record in ma.records.values()] == [*range(1, 21)]


def test_what_is_not_kept_any_more_holds_nothing_up(keeping: Desk, ma: FakeMa) -> None:
    keeping.add(20)
    keeping.steps(1)
    with keeping.file.transaction() as connection:
        connection.execute("DELETE FROM records WHERE number <= 15")
    ma.lose(str(keeping.spool.id), after=3)
    keeping.add(1)
    keeping.steps(4)
    assert [record["number"] for record in ma.records.values()] == [1, 2, 3, *range(16, 22)]
    assert keeping.spool.report().rows == 0


def test_an_answer_from_before_the_loss_changes_nothing_for_good(keeping: Desk, ma: FakeMa) -> None:
    """The receipt of a database that is gone meanwhile."""
    keeping.add(20)
    keeping.steps(1)
    ma.lose(str(keeping.spool.id), after=5)
    keeping.add(1)
    ma.answers = [(200, {}, {"stored_up_to": 21})]
    keeping.steps(1)
    keeping.add(1)
    keeping.steps(3)
    assert [record["number"] for record in ma.records.values()] == [*range(1, 23)]


def test_a_loss_that_is_told_late_makes_nothing_twice(keeping: Desk, ma: FakeMa) -> None:
    keeping.add(20)
    keeping.steps(1)
    keeping.reporter.send_again(7, 18)
    keeping.steps(2)
    assert [len(batch) for batch in ma.batches] == [20], "it is over already"


def test_a_batch_whose_answer_does_not_come_is_halved_and_known_when_it_comes_again(
    desk: Desk, ma: FakeMa, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.add(100)
    monkeypatch.setattr("kma.ma_client.ANSWER_SECONDS", 0.2)

    def store_slowly(body: Any) -> Any:
        stored = FakeMa._store(ma, body)
        time.sleep(1)
        return stored

    with monkeypatch.context() as slow:
        slow.setattr(ma, "_store", store_slowly)
        assert desk.reporter.step() > 0
    assert "the MA does not accept a batch of 100 records" in str(desk.reporter.problem)
    monkeypatch.setattr("kma.ma_client.ANSWER_SECONDS", 30)
    desk.steps(2)
    assert (len(ma.records), desk.spool.report().rows) == (100, 0)


def test_a_link_that_is_too_slow_for_each_record_changes_no_order(desk: Desk, ma: FakeMa) -> None:
    desk.add(3)
    ma.answers = [(408, {}, None)] * 12
    assert all(wait > 0 for wait in desk.steps(12))
    desk.steps(3)
    assert [record["number"] for record in ma.records.values()] == [1, 2, 3]


def test_records_at_once_grow_with_care_where_they_take_long() -> None:
    assert [larger(100, 1), larger(100, 8), larger(1, 8), larger(400, 1), larger(500, 8)] == [
        200,
        112,
        2,
        500,
        500,
    ]


PUT_LAST = """
import os, pathlib, signal, sys
from kma.spool.records import Spool
from kma.spool.file import SpoolFile
file = SpoolFile(pathlib.Path(sys.argv[1]))
spool = Spool(file, 1_000_000, 0)
die = lambda statement: statement.startswith(sys.argv[2]) and os.kill(os.getpid(), signal.SIGKILL)
with file.reading() as connection:
    connection.set_trace_callback(die)
spool.put_last(1)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.kill
@pytest.mark.parametrize(
    ("dies_at", "order"),
    [
        ("DELETE FROM records", [1, 2, 3]),
        ("INSERT INTO records", [1, 2, 3]),
        ("COMMIT", [1, 2, 3]),
        ("-", [2, 3, 4]),
    ],
)
def test_a_record_that_goes_behind_others_is_there_once_whenever_its_kma_is_killed(
    tmp_path: Path, ma: FakeMa, dies_at: str, order: list[int]
) -> None:
    """Before the commit it stands where it stood, after it last: under one id."""
    desk = Desk(tmp_path, ma)
    content = Recovered(RUN, MessageIdentity(key="ID:" + "x" * 5000), datetime.now(UTC))
    desk.spool.append([New("run", content, uuid4())])
    desk.add(2)
    desk.close()
    arguments = [sys.executable, "-c", PUT_LAST, str(tmp_path / "spool.sqlite3"), dies_at]
    assert subprocess.run(arguments, check=False).returncode == -signal.SIGKILL
    desk = Desk(tmp_path, ma)
    desk.steps(1)
    assert [record["number"] for record in ma.records.values()] == order
    desk.close()
