"""Figures of minutes against the truth file of `demo.scripted`: kill -9 at random on the real Artemis, of
children and of the whole container.

One difference is allowed. An attempt begins when its slot says so; the agent writes its line right after
that. A kill -9 of the container ends its children with it, each in one handling at most. So up to one attempt
per kill and child may be counted, as a failure, without a line. There is never a line that is not counted,
and never two counts of one.
"""

import random
import time
from collections import Counter
from pathlib import Path

import pytest

from contract.histogram import unpacked
from contract.messages import Mode
from contract.records import MinuteFigures
from contract.wire import load
from tests.broker.houses import RealHouse
from tests.kma.conftest import StartWorker
from tests.kma.fake_ma import FakeMa
from tests.kma.fakes import FIGURES, eventually
from tests.kma.queues import of, publish, script

pytestmark = pytest.mark.kill

OUT = "demo.minutes.out"
CONCURRENCY, ATTEMPTS, MESSAGES = 3, 4, 240


def steps(chance: random.Random, mode: Mode) -> object:
    """What a message asks for. In the mode CLIENT it is answered from within, else it would wait for ever."""
    found = step(chance)
    answer = {"do": "acknowledge", "action": "COMMIT"}
    return [*(found if isinstance(found, list) else [found]), answer] if mode is Mode.CLIENT else found


def step(chance: random.Random) -> object:
    nap = {"do": "sleep", "seconds": round(chance.uniform(0, 0.02), 4)}
    return chance.choices(
        [
            {"do": "ok"},
            nap,
            [nap, {"do": "send", "destination": OUT}],
            {"do": "raise", "first": chance.randint(1, ATTEMPTS)},
            {"do": "temporary", "first": 1},
            {"do": "invalid"},
            {"do": "exit", "first": 1},
            {"do": "kill", "first": 1},
        ],
        weights=[30, 40, 10, 6, 4, 2, 3, 3],
    )[0]


@pytest.mark.parametrize(
    ("seed", "mode"), list(enumerate([Mode.AUTO, Mode.TRANSACTED, Mode.DUPS_OK, Mode.CLIENT, Mode.AUTO]))
)
def test_the_sum_of_all_minutes_is_the_number_of_attempts_that_began(
    house: RealHouse, ma: FakeMa, start: StartWorker, tmp_path: Path, seed: int, mode: Mode
) -> None:
    chance = random.Random(seed)
    setting = house.setting(attempts=ATTEMPTS)
    house.setting(address=OUT)
    truth = tmp_path / "truth"
    publish(house, setting, *(script(steps(chance, mode), f"ID:{n}") for n in range(MESSAGES)))
    run = of(
        setting,
        mode=mode,
        concurrency=CONCURRENCY,
        max_attempts=ATTEMPTS,
        child_memory_mb=chance.choice([0, 200]),
        parameters={"truth_file": str(truth)},
    )
    ma.want(run)
    worker, kills = start(), 3
    for part in range(1, kills + 1):
        number = part * MESSAGES // (kills + 2)
        eventually(lambda number=number: len(worker.truth(truth)) >= number, f"{number} starts", 60)  # type: ignore[misc]
        time.sleep(chance.uniform(0, 0.05))
        worker.kill()
        worker.start()
    eventually(lambda: house.figures(setting).messages == 0, "an empty queue", 60)
    eventually(lambda: ma.last["runs"][0]["in_progress"] == 0, "all ended")
    ma.want()
    eventually(lambda: ma.contents("closing") != [], "the closing record", 60)
    lines = sum("attempt" in line for line in worker.truth(truth))
    told = [load(MinuteFigures, each) for each in ma.contents(FIGURES)]
    assert len(told) >= kills + 1, "each life tells its own"
    ends = Counter[str]()
    for each in told:
        ends.update(succeeded=each.succeeded, failed=each.failed, temporary=each.temporary)
        assert each.occurred_at < each.until
    assert 0 <= ends.total() - lines <= kills * CONCURRENCY, (ends, lines)
    if mode is not Mode.CLIENT:  # there a delivery has protocols of its own
        protocols = Counter(one["outcome"] for one in ma.contents("protocol"))
        assert ends["failed"] + ends["temporary"] == protocols.total(), "each failure has its protocol"
        measured = sum(sum(unpacked(each.processing).values()) for each in told)
        died = protocols["kma_died"]
        assert ends.total() - died <= measured <= ends.total(), "but for the dead"
