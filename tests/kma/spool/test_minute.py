"""The open minute: each end is counted once, wherever the container dies; how long a minute is."""

import itertools
import mmap
import os
import random
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from contract.histogram import bucket, unpacked
from contract.outcomes import Outcome
from contract.records import MinuteFigures, RecordRun
from contract.wire import dump, load
from kma.children.worker_slot import HandlingEnd
from kma.delivery.effects import RunFacts
from kma.delivery.in_flight import InFlight
from kma.handling.handler import RETURNED, HandlingResult
from kma.host.recovery import open_figures, recover_all
from kma.run.minutes import MINUTE, Durations, RunMinutes, ended_at
from kma.spool.file import SpoolFile
from kma.spool.journal import MINUTE_AT, NO_TIMESTAMP, Journal, Totals
from kma.spool.ledger import Ledger, run_key
from kma.spool.minute import OpenMinute, resident_bytes
from kma.spool.records import New, Spool
from tests.kma.fakes import FIGURES, contents, message, wanted

RUN = RecordRun("orders", UUID(int=7), 3, "srv-1", "demo.orders", "1")
KEY = run_key(RUN.activation, RUN.epoch)
ABOUT = {"run": dump(RUN), "queue": "orders", "destination": "demo.orders", "masked": []}
SLOTS = 4
NOON = 1_800_000_000.0 // 3600 * 3600
FAILED, TEMPORARY = HandlingResult(Outcome.RAISED), HandlingResult(Outcome.TEMPORARY)


def ended(slot: int, record: bytes, handled: HandlingResult = RETURNED, *, attempt: int = 1) -> HandlingEnd:
    work = InFlight(slot, b"", 0, attempt, record, 0, ())
    work.slot = slot
    return HandlingEnd(work, handled, 1, 0.5)


def total(records: Sequence[MinuteFigures]) -> int:
    return sum(one.succeeded + one.failed + one.temporary for one in records)


# -- killed anywhere -----------------------------------------------------------------------------------------


class Watched(mmap.mmap):
    """Says each write to a map, and what it would be if the process died in the middle of it."""

    written: Callable[[], None] = staticmethod(lambda: None)

    def __setitem__(self, at: Any, value: Any) -> None:
        if isinstance(at, slice):
            data = memoryview(value).cast("B")
            for part in (1, len(data) // 2):
                super().__setitem__(slice(at.start, at.start + part), data[:part])
                Watched.written()
        super().__setitem__(at, value)
        Watched.written()


@dataclass
class Life:
    """A run as its journal and its spool see it. `begun`: handlings, by the truth."""

    journal: Journal
    path: Path
    minute: OpenMinute
    chance: random.Random
    begun: int = 0
    stored: dict[UUID, MinuteFigures] = field(default_factory=dict)
    records: dict[int, bytes] = field(default_factory=dict)
    returned: set[int] = field(default_factory=set)
    numbers: Iterator[int] = field(default_factory=itertools.count)
    seen: list[tuple[int, dict[UUID, MinuteFigures], bytes]] = field(default_factory=list)

    def look(self) -> None:
        self.seen.append((self.begun, dict(self.stored), self.path.read_bytes()))

    def begin(self, slot: int) -> None:
        self.records[slot] = bytes(8) + next(self.numbers).to_bytes(8, "big")
        self.journal.claim(slot, self.records[slot], 1, 0, slot, message("x"))
        self.look()
        self.journal.begin(slot, 1, 100)
        self.begun += 1
        self.look()
        if self.chance.random() < 0.6:
            self.journal.finish(slot, 0.1, answering=self.chance.random() < 0.3)
            self.returned.add(slot)
            self.look()

    def end(self, slots: Sequence[int]) -> None:
        ends = [
            ended(
                slot,
                self.records[slot],
                RETURNED if slot in self.returned else self.chance.choice([FAILED, TEMPORARY]),
            )
            for slot in slots
        ]
        self.minute.count(ends)
        for slot in slots:
            self.journal.free(slot)
            self.look()
            del self.records[slot]
            self.returned.discard(slot)

    def turn(self) -> None:
        if not self.minute.empty:
            self.stored[self.minute.id] = self.minute.figures(RUN, NOON)
            self.look()
        self.minute.begin(NOON)


@pytest.fixture
def life(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[Life]:
    path = tmp_path / "run.journal"
    journal = Journal.create(path, ABOUT, SLOTS)
    monkeypatch.setattr(mmap, "mmap", Watched)
    made = Life(journal, path, OpenMinute.create(journal, NOON, 2), random.Random(request.param))
    monkeypatch.setattr(Watched, "written", staticmethod(made.look))
    yield made
    made.minute.close()
    journal.close()


@pytest.mark.parametrize("life", range(6), indirect=True)
def test_each_handling_is_in_one_record_wherever_the_container_dies(life: Life, tmp_path: Path) -> None:
    """A copy of the journal after each single write, and in the middle of it: then the next start, twice."""
    for _ in range(9):
        free = [slot for slot in range(SLOTS) if slot not in life.records]
        for slot in life.chance.sample(free, life.chance.randint(0, len(free))):
            life.begin(slot)
        slots = sorted(life.records)
        life.end(life.chance.sample(slots, life.chance.randint(0, len(slots))))
        if life.chance.random() < 0.4:
            life.turn()
    Watched.written = staticmethod(lambda: None)
    assert len(life.seen) > 60
    for number, (begun, stored, copy) in enumerate(life.seen):
        found = tmp_path / "found.journal"
        found.write_bytes(copy)
        for _ in range(2):
            journal = Journal.open(found)
            new = open_figures(journal, RUN, KEY, stored.__contains__, died=True)
            journal.close()
            for one in new:  # as the spool does it: an id that it knows is not stored again
                assert isinstance(one.content, MinuteFigures)
                stored.setdefault(one.id, one.content)
            assert total(list(stored.values())) == begun, f"write {number} of {len(life.seen)}"


def test_a_slot_that_was_claimed_anew_is_not_taken_for_the_one_that_was_counted(tmp_path: Path) -> None:
    journal = Journal.create(tmp_path / "a.journal", ABOUT, SLOTS)
    minute = OpenMinute.create(journal, NOON, 1)
    for number in (1, 2):
        record = number.to_bytes(16, "big")
        journal.claim(0, record, 1, 0, 0, b"x")
        journal.begin(0, 1)
        if number == 1:
            minute.count([ended(0, record, FAILED)])
            journal.free(0)
    minute.close()
    (new,) = open_figures(journal, RUN, KEY, lambda record: False, died=True)
    journal.close()
    assert isinstance(new.content, MinuteFigures) and new.content.failed == 2


# -- what is counted -----------------------------------------------------------------------------------------


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    made = Journal.create(tmp_path / "run.journal", ABOUT, SLOTS)
    yield made
    made.close()


def test_the_figures_say_how_and_how_long(journal: Journal) -> None:
    minute = OpenMinute.create(journal, NOON, 3)
    since = (0.25, NO_TIMESTAMP, -3.0)
    for slot, seconds in enumerate(since):
        journal.claim(slot, bytes(15) + bytes([slot + 1]), 2, 0, slot, b"x")
        journal.begin(slot, 1, 1000)
        journal.finish(slot, seconds)
    journal.claim(3, bytes(15) + b"\x09", 1, 0, 3, b"x")
    journal.begin(3, 1, 500)
    minute.count(
        [
            *(ended(slot, b"", attempt=2) for slot in range(3)),
            ended(3, b"", TEMPORARY),
            ended(3, b"", FAILED),
            ended(3, b"", HandlingResult(Outcome.RELEASED)),
        ]
    )
    minute.saw(children=5000)
    minute.saw(children=4000, waited=1.5)
    figures = minute.figures(RUN, NOON + 60)
    minute.close()
    assert (figures.succeeded, figures.failed, figures.temporary, figures.recovered) == (3, 1, 1, 3)
    assert (figures.bytes, figures.no_timestamp, figures.before_sent) == (4000, 1, 1)
    assert unpacked(figures.critical) == {bucket(0.25): 1}
    processing = unpacked(figures.processing)
    assert sum(processing.values()) == 5 and processing[bucket(0.5)] == 2
    assert 1.0 <= figures.busy_seconds < 1.5
    assert (figures.concurrency, figures.children_bytes, figures.spool_seconds) == (3, 5000, 1.5)
    assert figures.occurred_at == datetime.fromtimestamp(NOON, UTC)
    assert load(MinuteFigures, dump(figures)) == figures


def test_more_ends_than_one_commit_holds_are_all_counted(tmp_path: Path) -> None:
    journal = Journal.create(tmp_path / "wide.journal", ABOUT, 150)
    minute = OpenMinute.create(journal, NOON, 10)
    for slot in range(150):
        journal.claim(slot, slot.to_bytes(16, "big"), 1, 0, slot, b"x")
        journal.begin(slot, 1)
    minute.count([ended(slot, b"", FAILED) for slot in range(150)])
    minute.close()
    (new,) = open_figures(journal, RUN, KEY, lambda record: False, died=True)
    journal.close()
    assert isinstance(new.content, MinuteFigures) and new.content.failed == 150


def test_the_memory_of_a_process_is_read_and_of_none_is_nothing() -> None:
    assert resident_bytes(os.getpid()) > 1_000_000
    assert resident_bytes(2**22 + 1) == 0


# -- after a kill --------------------------------------------------------------------------------------------


@dataclass
class Shelf:
    folder: Path
    file: SpoolFile
    spool: Spool
    ledger: Ledger

    def recover(self) -> int:
        return recover_all(self.folder, self.spool, self.ledger).total()

    def figures(self) -> list[dict[str, Any]]:
        return contents(self.spool, FIGURES)


@pytest.fixture
def shelf(tmp_path: Path) -> Iterator[Shelf]:
    file = SpoolFile(tmp_path / "spool.sqlite3")
    yield Shelf(tmp_path, file, Spool(file, 10**7), Ledger(file))
    file.close()


def test_what_was_counted_and_what_ended_since_comes_with_the_protocols(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = Journal.create(shelf.folder / "a.journal", ABOUT, SLOTS)
    minute = OpenMinute.create(journal, NOON, 2)
    for slot in range(3):
        journal.claim(slot, bytes(15) + bytes([slot + 1]), 1, 0, slot, message("x"))
        journal.begin(slot, 1, 10)
    journal.finish(0, 0.5)
    journal.finish(1, 0.5)
    minute.count([ended(0, b"")])
    minute.close()
    journal.close()
    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", lambda path: None)
        assert shelf.recover() == 1, "one had begun"
    assert shelf.recover() == 0, "killed before the journal was gone: it is counted"
    (figures,) = shelf.figures()
    assert (figures["succeeded"], figures["failed"], figures["bytes"]) == (2, 1, 30)
    assert sum(unpacked(figures["processing"]).values()) == 2, "how long the dead one took, nobody knows"
    run = shelf.ledger.run(KEY)
    assert run is not None and run.records == 2, "the closing record counts it"


def test_a_journal_of_a_version_that_counted_nothing_is_recovered_as_before(shelf: Shelf) -> None:
    journal = Journal.create(shelf.folder / "a.journal", ABOUT, SLOTS)
    journal.claim(0, bytes(15) + b"\x01", 2, 0, 0, message("x"))
    journal.begin(0, 1)
    journal.write_totals(Totals(handled=10, failed=1))
    journal.close()
    found = (shelf.folder / "a.journal").read_bytes()
    assert found[MINUTE_AT : MINUTE_AT + 8192] == bytes(8192)
    assert shelf.recover() == 1 and shelf.figures() == []
    run = shelf.ledger.run(KEY)
    assert run is not None and (run.totals.handled, run.totals.failed, run.records) == (10, 1, 1)


# -- when it is over -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("began", "now", "elapsed", "ended"),
    [
        (0.0, 59.9, 59.9, None),
        (0.0, 60.0, 60.0, 60.0),
        (0.0, 60.3, 59.8, 60.0),
        (40.0, 61.0, 21.0, 60.0),
        (0.0, 300.4, 300.4, 300.0),
        (40.0, 300.4, 260.4, 300.0),
        (20.0, 3650.0, 30.0, 60.0),
        (20.0, 3650.0, 70.0, 120.0),
        (3620.0, 30.0, 10.0, None),
        (3620.0, 80.0, 60.0, 3680.0),
        (3620.0, 3619.0, 30.0, None),
        (0.0, -3600.0, 59.0, None),
    ],
    ids=lambda value: str(value),
)
def test_a_minute_is_over_by_the_clock_that_people_read_and_no_longer_than_time_has_passed(
    began: float, now: float, elapsed: float, ended: float | None
) -> None:
    found = ended_at(NOON + began, NOON + now, elapsed)
    assert found == (None if ended is None else NOON + ended)


@dataclass
class Hours:
    """A run's minutes by clocks of the test, on a real spool."""

    journal: Journal
    spool: Spool
    minutes: RunMinutes
    wall: list[float]
    steady: list[float]
    told: list[Durations]
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def handle(self, number: int = 1) -> None:
        for _ in range(number):
            record = next(self.numbers).to_bytes(16, "big")
            self.journal.claim(0, record, 1, 0, 0, b"x")
            self.journal.begin(0, 1)
            self.minutes.count([ended(0, record, FAILED)])
            self.journal.free(0)

    def later(self, seconds: float, *, jump: float = 0.0, waits: bool = False) -> None:
        self.wall[0] += seconds + jump
        self.steady[0] += seconds
        self.minutes.step(list, waits=waits)

    def figures(self) -> list[tuple[float, float, int]]:
        found = [load(MinuteFigures, one) for one in contents(self.spool, FIGURES)]
        return [
            (one.occurred_at.timestamp() - NOON, one.until.timestamp() - NOON, one.failed) for one in found
        ]


@pytest.fixture
def hours(shelf: Shelf, journal: Journal) -> Iterator[Hours]:
    wall, steady = [NOON + 30.0], [1000.0]
    facts = RunFacts(RUN, KEY, wanted(concurrency=2))
    told: list[Durations] = []
    minutes = RunMinutes(journal, facts, shelf.spool, clock=lambda: wall[0], steady=lambda: steady[0])
    minutes.tell = told.append
    shelf.ledger.open_run(KEY, {"run": dump(RUN)})
    yield Hours(journal, shelf.spool, minutes, wall, steady, told)


def test_a_minute_with_handlings_is_stored_when_it_is_over_and_an_idle_one_is_not(hours: Hours) -> None:
    hours.handle(2)
    hours.later(29)
    assert hours.figures() == []
    hours.later(1.25)
    assert hours.figures() == [(30, 60, 2)]
    hours.later(60)
    hours.later(60)
    hours.handle(3)
    hours.later(20)
    assert hours.minutes.finish()
    assert hours.figures() == [(30, 60, 2), (180, 200.25, 3)]


def test_durations_are_told_once_each_whatever_becomes_of_the_minutes(hours: Hours) -> None:
    hours.handle(2)
    hours.later(0.5)
    hours.handle(1)
    hours.later(0.5)
    assert [sum(one.processing) for one in hours.told] == [2], "no more often than each second"
    hours.later(40)
    hours.handle(4)
    hours.later(3600, jump=-7200)
    hours.later(0.2)
    hours.handle(8)
    assert hours.minutes.finish()
    assert sum(sum(one.processing) for one in hours.told) == 15
    assert sum(one.busy for one in hours.told) == pytest.approx(15 * 0.5)
    assert all(sum(one.critical) == 0 for one in hours.told), "nothing went well"


def test_a_clock_that_jumps_an_hour_stretches_no_minute_and_loses_none(hours: Hours) -> None:
    hours.handle(1)
    hours.later(10, jump=3600)
    hours.handle(2)
    hours.later(10)
    hours.later(0, jump=-3600)
    hours.handle(4)
    hours.later(40)
    assert hours.figures() == [(30, 60, 1)], "a clock that was set back closes nothing"
    hours.later(20)
    assert hours.figures() == [(30, 60, 1), (3600, 3670, 6)], "and keeps it open no longer than a minute"
    hours.handle(8)
    hours.later(60)
    assert hours.minutes.finish()
    assert sum(figures[2] for figures in hours.figures()) == 15
    assert all(began < until for began, until, _ in hours.figures())


def test_while_the_spool_fills_a_minute_grows_and_is_cut_when_it_is_drained(
    hours: Hours, monkeypatch: pytest.MonkeyPatch
) -> None:
    crowded = [True]
    monkeypatch.setattr(Spool, "crowded", property(lambda self: crowded[0]))
    for _ in range(5):
        hours.handle()
        hours.later(60)
    assert hours.figures() == []
    crowded[0] = False
    hours.handle()
    hours.later(10)
    assert hours.figures() == [], "not in the middle of a minute"
    hours.later(20)
    assert hours.figures() == [(30, 360, 6)]


def test_a_spool_is_crowded_from_a_quarter_on(shelf: Shelf) -> None:
    file = shelf.file
    figures = MinuteFigures(RUN, datetime.fromtimestamp(NOON, UTC), datetime.fromtimestamp(NOON, UTC))
    spool = Spool(file, 4000)
    while not spool.crowded:
        assert spool.report().bytes <= 1000
        spool.append([New(KEY, figures, UUID(int=spool.last_number() + 1))])
    assert spool.report().bytes > 1000 and not spool.full
    spool.taken(spool.last_number())
    assert not spool.crowded


def test_figures_that_the_disk_does_not_take_stay_open(hours: Hours, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:

        def fails(*_: Any, **__: Any) -> None:
            raise sqlite3.OperationalError("database or disk is full")

        patched.setattr(Spool, "append", fails)
        hours.handle(2)
        hours.later(40)
        hours.handle(1)
        hours.later(0.5)
    hours.later(0.4)
    assert hours.figures() == [], "not at once again"
    hours.later(0.2)
    assert hours.figures() == [(30, 60, 3)]


def test_what_waits_for_the_spool_is_said(hours: Hours) -> None:
    hours.later(1, waits=True)
    hours.later(4, waits=True)
    hours.later(2)
    hours.later(5)
    assert hours.minutes.finish()
    (found,) = contents(hours.spool, FIGURES)
    assert found["spool_seconds"] == 6.0 and found["failed"] == 0


def test_the_memory_of_the_processes_is_looked_at_every_ten_seconds(hours: Hours) -> None:
    looks = []

    def processes() -> list[int]:
        looks.append(hours.steady[0])
        return [os.getpid(), os.getpid()]

    for _ in range(25):
        hours.minutes.step(processes)
        hours.steady[0] += 1
        hours.wall[0] += 1
    assert looks == [1002.0, 1012.0, 1022.0]
    hours.handle()
    assert hours.minutes.finish()
    (found,) = contents(hours.spool, FIGURES)
    assert found["children_bytes"] > 2 * 1_000_000, "together"


def test_the_end_of_a_run_counts_what_returned_and_nobody_read(hours: Hours) -> None:
    hours.journal.claim(1, bytes(15) + b"\x63", 1, 0, 0, b"x")
    hours.journal.begin(1, 1)
    hours.journal.finish(1)
    assert hours.minutes.finish()
    (found,) = contents(hours.spool, FIGURES)
    assert (found["succeeded"], found["no_timestamp"]) == (1, 0)
    assert MINUTE == 60.0
