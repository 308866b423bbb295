"""A link that is too slow for what a KMA sends at once: it sends less, nothing is lost, and nothing waits for
ever."""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from broker.port import Account
from contract.records import MessageIdentity, RecordRun, Recovered
from kma.spool.file import SpoolFile
from kma.spool.records import New, Spool
from tests.kma.fake_ma import FakeMa
from tests.kma.fakes import eventually, said
from tests.kma.worker import Worker

pytestmark = pytest.mark.process

RUN = RecordRun("orders", UUID(int=1), 1, "srv-1", "demo.orders")
SMALL = 300  # bytes that a record has about, beside the properties that a test gives it


class SlowMa(FakeMa):
    """Waits in vain for more than `passes` bytes of records (408), as over a link that is too slow for
    them."""

    def __init__(self) -> None:
        super().__init__()
        self.passes = 10_000
        self.asked_numbers: list[list[int]] = []

    def _decide(self, request: Any, body: Any) -> tuple[int, dict[str, str], Any]:
        if "records" in body:
            self.asked_numbers.append([record["number"] for record in body["records"]])
            if len(json.dumps(body["records"])) > self.passes:
                return 408, {}, None
        return super()._decide(request, body)


@pytest.fixture
def ma() -> Iterator[SlowMa]:
    fake = SlowMa()
    yield fake
    fake.close()


Fill = Callable[..., Path]


@pytest.fixture
def filled(tmp_path: Path) -> Fill:
    """The folder of a server whose spool holds records of so many bytes beside what each has."""

    def fill(*sizes: int) -> Path:
        (tmp_path / "srv-1").mkdir()
        file = SpoolFile(tmp_path / "srv-1" / "spool.sqlite3")
        Spool(file, 10_000_000, 0).append(
            [
                New(
                    "run",
                    Recovered(RUN, MessageIdentity(key=f"ID:{n}-{'x' * size}"), datetime.now(UTC)),
                    uuid4(),
                )
                for n, size in enumerate(sizes)
            ]
        )
        file.close()
        return tmp_path

    return fill


@pytest.fixture
def start(ma: SlowMa) -> Iterator[Callable[[Path], Worker]]:
    started: list[Worker] = []

    def run(folder: Path) -> Worker:
        worker = Worker(folder, ma, Account("amqp://127.0.0.1:1", "kma", "none"))
        worker.start()
        started.append(worker)
        return worker

    yield run
    for worker in started:
        worker.stop()


def keys(ma: FakeMa) -> list[int]:
    """Which records came, by their place in the spool when the test began."""
    return [int(one["message"]["key"].split(":")[1].split("-")[0]) for one in ma.contents("recovered")]


def test_a_batch_for_which_the_link_is_too_slow_is_halved_until_it_comes_through(
    ma: SlowMa, filled: Fill, start: Callable[[Path], Worker]
) -> None:
    start(filled(*[0] * 200))
    eventually(lambda: len(ma.asked_numbers) >= 4, "several tries", 60)
    assert len(ma.asked_numbers[1]) < len(ma.asked_numbers[0]), "the same is sent again"
    eventually(lambda: len(ma.records) == 200, "all of them", 60)
    assert keys(ma) == [*range(200)]


def test_one_record_that_is_too_much_for_the_link_stops_no_other_and_is_named(
    ma: SlowMa, filled: Fill, start: Callable[[Path], Worker]
) -> None:
    start(filled(0, 20_000, 30_000, 0, 0))
    eventually(lambda: keys(ma) == [0, 3, 4], "those after it", 90)
    eventually(lambda: "Some records (2) do not reach the MA" in said(ma.last["problems"]), "the note", 30)
    ma.passes = 100_000
    eventually(lambda: sorted(keys(ma)) == [0, 1, 2, 3, 4], "the link is better: both of them", 90)
    eventually(lambda: ma.last["problems"] == [], "the end of the note", 30)
