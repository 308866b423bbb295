"""The mode DUPS_OK: acceptances wait for each other, never longer than they may; nothing waits with what
failed."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from broker.port import Settle
from contract.messages import Mode
from tests.broker.houses import RealHouse
from tests.kma.conftest import StartWorker
from tests.kma.fake_ma import FakeMa
from tests.kma.fakes import Stage, eventually, message
from tests.kma.queues import of, publish, script

pytestmark = pytest.mark.process


def stage(folder: Path, steps: list[dict[str, Any]], **fields: Any) -> Stage:
    made = Stage(folder, [message(step) for step in steps], mode=Mode.DUPS_OK, **fields)
    made.run.start()
    return made


def test_acceptances_go_by_count_and_credit_goes_on_meanwhile(tmp_path: Path) -> None:
    made = stage(tmp_path, [{"do": "ok"}] * 25, dups_ok_messages=10, dups_ok_seconds=60.0)
    eventually(lambda: made.run.report().handled == 25, "all handled with one credit per handler")
    made.settled(20)
    assert len(made.link.settled) == 20
    assert len(made.link.outstanding) == 5
    made.end()
    assert made.link.outcomes() == {Settle.ACCEPT: 25}, "a stop tells what is left"


def test_acceptances_go_when_the_first_has_waited_long_enough(tmp_path: Path) -> None:
    made = stage(tmp_path, [{"do": "ok"}] * 3, dups_ok_messages=100, dups_ok_seconds=0.3)
    made.settled(3)
    made.end()


def test_what_fails_or_sends_or_has_a_record_does_not_wait(tmp_path: Path) -> None:
    steps: list[dict[str, Any]] = [
        {"do": "raise", "first": 1},
        {"do": "send", "destination": "demo.invoices"},
        {"do": "ok"},
    ]
    made = stage(tmp_path, steps, dups_ok_seconds=60.0)
    eventually(lambda: made.run.report().handled == 3, "the recovery too")
    eventually(lambda: len(made.link.settled) == 3, "all but the quiet one")
    assert made.link.outcomes() == {Settle.FAIL: 1, Settle.ACCEPT: 2}
    assert made.records("recovered") != []
    made.end()
    assert made.link.outcomes() == {Settle.FAIL: 1, Settle.ACCEPT: 3}


def test_a_lost_connection_forgets_them_and_they_come_again(tmp_path: Path) -> None:
    made = stage(tmp_path, [{"do": "ok"}] * 4, dups_ok_messages=8, dups_ok_seconds=60.0)
    eventually(lambda: made.run.report().handled == 4, "all handled")
    made.link.lose()
    eventually(lambda: made.run.report().handled == 8, "all again")
    assert made.link.settled == [], "what the old connection delivered fills no batch"
    made.end()
    assert made.link.outcomes() == {Settle.ACCEPT: 4}


def test_a_trip_tells_what_was_handled_well(tmp_path: Path) -> None:
    made = stage(tmp_path, [{"do": "ok"}, {"do": "raise"}], max_failures=1, dups_ok_seconds=60.0)
    eventually(lambda: not made.run.alive, "the end of the run")
    assert made.link.outcomes() == {Settle.ACCEPT: 1, Settle.FAIL: 1}
    made.end()


def test_a_limit_of_messages_ends_the_run_with_all_told(tmp_path: Path) -> None:
    made = stage(tmp_path, [{"do": "ok"}] * 9, limit_messages=5, dups_ok_seconds=60.0)
    eventually(lambda: not made.run.alive, "the end of the run")
    assert made.link.outcomes() == {Settle.ACCEPT: 5}
    made.end()


@pytest.mark.kill
@pytest.mark.parametrize(("most", "seconds"), [(20, 60.0), (100, 1.0)])
def test_kill_9_repeats_about_the_batch_and_loses_none(
    house: RealHouse, ma: FakeMa, start: StartWorker, tmp_path: Path, most: int, seconds: float
) -> None:
    setting = house.setting(attempts=4)
    truth = tmp_path / "truth"
    publish(house, setting, *(script({"do": "sleep", "seconds": 0.04}, f"ID:{n}") for n in range(150)))
    wish = {"dups_ok_messages": most, "dups_ok_seconds": seconds, "concurrency": 2}
    ma.want(of(setting, mode=Mode.DUPS_OK, parameters={"truth_file": str(truth)}, **wish))
    worker = start()
    eventually(lambda: len(worker.truth(truth)) >= 70, "some of them", 40)
    worker.kill()
    worker.start()
    eventually(lambda: len({line["id"] for line in worker.truth(truth)}) == 150, "every one", 40)
    assert worker.stop() == 0
    assert house.figures(setting).messages == 0, "a stop tells the last batch"
    seen = Counter(line["id"] for line in worker.truth(truth))
    # Beside the batch: what the two children were at, what each had finished and the run had not heard of,
    # and what they handled while the batch was on its way to the broker.
    assert sum(seen.values()) - 150 <= most + 2 * 2 + 2 * 2
    assert not house.dead(setting)
