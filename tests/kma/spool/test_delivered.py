"""What the MA has taken can be sent again for a while, costs nothing that waits, and is whole after any
kill."""

import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kma.spool import retained
from kma.spool.__main__ import records_in, summary
from kma.spool.file import SpoolFile
from kma.spool.records import Spool
from tests.kma.spool.test_spool import may_grow_to, new

HOUR = 3600.0


@pytest.fixture
def file(tmp_path: Path) -> Iterator[SpoolFile]:
    one = SpoolFile(tmp_path / "spool.sqlite3")
    yield one
    one.close()


def filled(file: SpoolFile, records: int, *, taken: int = 0, limit: int = 10**7) -> Spool:
    spool = Spool(file, limit, 48 * HOUR)
    spool.append([new() for _ in range(records)])
    if taken:
        spool.taken(taken)
    return spool


def waiting(spool: Spool) -> list[int]:
    return [record.number for record in spool.head(10**6, 10**9)]


def kept(file: SpoolFile) -> list[int]:
    with file.reading() as connection:
        return [number for (number,) in connection.execute("SELECT number FROM records ORDER BY number")]


def test_what_was_taken_does_not_wait_and_comes_again_when_it_is_asked_for(file: SpoolFile) -> None:
    spool = filled(file, 10, taken=7)
    assert waiting(spool) == [8, 9, 10] and spool.report().rows == 3 and spool.delivered() == 7
    assert spool.send_again(4) == 3
    assert waiting(spool) == [5, 6, 7, 8, 9, 10] and spool.delivered() == 4
    assert spool.report() == Spool(file, 10**7, 48 * HOUR).report(), "the same to who opens the file anew"
    assert spool.send_again(4) == 0, "asked twice, it is done once"


def test_only_what_is_still_there_comes_again(file: SpoolFile) -> None:
    spool = filled(file, 10, taken=8)
    with file.transaction() as connection:
        retained.forget(connection, 5)
    spool = Spool(file, 10**7, 48 * HOUR)
    assert spool.send_again(2) == 3 and waiting(spool) == [6, 7, 8, 9, 10]
    assert spool.delivered() is None, "nothing further back can be asked for"


def test_without_hours_nothing_is_kept(file: SpoolFile) -> None:
    spool = Spool(file, 10**7)
    spool.append([new() for _ in range(3)])
    spool.taken(2)
    assert kept(file) == [3] and spool.delivered() is None and spool.send_again(0) == 0


def test_it_goes_before_anything_that_waits_is_refused_its_room(file: SpoolFile) -> None:
    spool = filled(file, 150, taken=150, limit=100_000)
    for _ in range(20):
        spool.append([new() for _ in range(5)])
        assert sum(size for (size,) in _sizes(file)) <= 100_000
    assert waiting(spool) == [*range(151, 251)]
    assert kept(file) == [*range(min(kept(file)), 251)] and 1 < min(kept(file)) < 151, "the oldest went first"
    while not spool.full:
        spool.append([new()])
    assert spool.delivered() is None and spool.report().bytes >= 100_000, "full is full of what waits"


def _sizes(file: SpoolFile) -> list[tuple[int]]:
    with file.reading() as connection:
        return connection.execute("SELECT size FROM records").fetchall()


def test_it_goes_when_it_was_taken_long_ago_however_long_it_had_waited(
    file: SpoolFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [time.time()]
    monkeypatch.setattr("kma.spool.records.time.time", lambda: now[0])
    spool = filled(file, 4)
    now[0] += 100 * HOUR
    spool.taken(2)
    now[0] += 47 * HOUR
    spool.taken(3)
    spool.forget_old()
    assert kept(file) == [1, 2, 3, 4]
    now[0] += 2 * HOUR
    spool.forget_old()
    assert kept(file) == [3, 4] and spool.delivered() == 3
    now[0] += 48 * HOUR
    spool.forget_old()
    assert kept(file) == [4] == waiting(spool) and spool.delivered() is None
    spool.append([new()])
    assert waiting(spool) == [4, 5], "the mark is known though its rows are gone"


def test_many_old_ones_go_a_few_at_a_time(file: SpoolFile, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [time.time()]
    monkeypatch.setattr("kma.spool.records.time.time", lambda: now[0])
    spool = filled(file, 1200, taken=1100)
    now[0] += 60 * HOUR
    assert [spool.forget_old() for _ in range(4)] == [500, 500, 100, 0]
    assert kept(file) == [*range(1101, 1201)] == waiting(spool)


def test_what_the_ma_refused_is_asked_again_as_well(file: SpoolFile) -> None:
    spool = filled(file, 5)
    spool.put_aside(2, "no")
    spool.put_aside(4, "no")
    spool.taken(5)
    assert spool.send_again(3) == 2 and waiting(spool) == [4, 5] and spool.set_aside() == 1
    assert spool.report() == Spool(file, 10**7, 48 * HOUR).report()


def test_what_was_refused_and_made_again_is_there_once(file: SpoolFile) -> None:
    spool, same = filled(file, 1), new()
    spool.append([same])
    spool.put_aside(2, "no")
    spool.append([same])
    assert waiting(spool) == [1] and spool.knows(same.id), "it would only be refused again"
    with file.transaction() as connection:  # as a KMA of before has left it
        connection.execute("INSERT INTO set_aside SELECT 9, id, kind, content, reason FROM set_aside")
    spool.taken(1)
    assert spool.send_again(0) == 2 and waiting(spool) == [1, 2] and spool.set_aside() == 0
    assert spool.report() == Spool(file, 10**7, 48 * HOUR).report()


def test_under_a_new_identity_nothing_is_offered_that_was_taken_under_the_old_one(file: SpoolFile) -> None:
    spool = filled(file, 5, taken=4)
    spool.renew_id()
    assert spool.delivered() is None and waiting(spool) == [5] and spool.first == 5


def test_a_record_made_again_has_no_effect_while_it_is_kept(file: SpoolFile) -> None:
    spool, same = Spool(file, 10**7, HOUR), new()
    spool.append([same])
    spool.taken(1)
    spool.append([same])
    assert waiting(spool) == [] and spool.knows(same.id)


def test_a_disk_that_is_full_gets_its_room_from_what_was_taken(file: SpoolFile) -> None:
    spool = filled(file, 900, taken=900)
    with file.reading() as connection:
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
    may_grow_to(file, pages)
    with pytest.raises(sqlite3.OperationalError):
        spool.append([new() for _ in range(200)])
    full = spool.full
    spool.try_again()
    assert full and not spool.full and len(kept(file)) < 900
    spool.append([new()])
    assert waiting(spool) == [901]


def test_a_file_of_before_is_opened_and_looked_at(tmp_path: Path) -> None:
    path = tmp_path / "spool.sqlite3"
    file = SpoolFile(path)
    filled(file, 3)
    with file.transaction() as connection:
        connection.execute("DELETE FROM records WHERE number = 1")
        connection.execute("DROP TABLE delivered")
    file.close()
    assert summary(path)["rows"] == 2 and [row["number"] for row in records_in(path, 9)] == [2, 3]
    file = SpoolFile(path)
    spool = Spool(file, 10**7, HOUR)
    assert waiting(spool) == [2, 3] and spool.delivered() is None
    file.close()


def test_people_see_what_is_kept(file: SpoolFile, tmp_path: Path) -> None:
    filled(file, 5, taken=3)
    seen = summary(tmp_path / "spool.sqlite3")
    assert (seen["rows"], seen["first"], seen["last"], seen["taken"]["rows"]) == (2, 4, 5, 3)
    assert [row["number"] for row in records_in(tmp_path / "spool.sqlite3", 9)] == [4, 5]


@pytest.mark.kill
@pytest.mark.process
@pytest.mark.parametrize("seed", range(4))
def test_a_kill_anywhere_leaves_every_record_above_the_mark(tmp_path: Path, seed: int) -> None:
    code = (
        "import sys, os, random; from pathlib import Path\n"
        "from tests.kma.spool.test_delivered import Spool, SpoolFile, new\n"
        "chance, spool = random.Random(int(sys.argv[2])), Spool(SpoolFile(Path(sys.argv[1])), 60_000, 3600)\n"
        "while True:\n"
        "    spool.append([new() for _ in range(chance.randrange(5))])\n"
        "    spool.taken(chance.randrange(spool.last_number() + 1)); os.write(1, b'.')\n"
        "    if chance.random() < 0.3:\n"
        "        spool.send_again(chance.randrange(spool.last_number() + 1))\n"
    )
    path = tmp_path / "spool.sqlite3"
    with subprocess.Popen(
        [sys.executable, "-c", code, str(path), str(seed)], stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.read(100 + random.Random(seed).randrange(100))
        process.send_signal(signal.SIGKILL)
    file = SpoolFile(path)
    spool = Spool(file, 60_000, 3600)
    rows, last = kept(file), spool.last_number()
    assert rows == [*range(rows[0], last + 1)], "nothing is missing between the oldest and the newest"
    with file.reading() as connection:
        mark = retained.mark(connection)
    assert waiting(spool) == [*range(mark + 1, last + 1)] and rows[0] <= mark + 1
    file.close()
