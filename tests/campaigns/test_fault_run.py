"""Two KMAs fail while site, database and Redis are killed in turn: every failed attempt is stored, each once.

A minute of failing in every run of the tests, ten with `./ma test --long tests/campaigns/test_fault_run.py`.
"""

import random
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.campaigns.campaign import LONG
from tests.campaigns.faults import ATTEMPTS, SERVERS, VICTIMS, FaultHouse, victims

pytestmark = pytest.mark.night

SECONDS = 600 if LONG else 60
KEY = "faults"


@pytest.fixture
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultHouse]:
    house = FaultHouse(Path(tmp_path_factory.mktemp("faults")))
    try:
        house.up()
        yield house
    finally:
        house.down()


@pytest.mark.timeout(2400)
def test_every_failed_attempt_is_stored_once_whatever_is_killed(house: FaultHouse) -> None:
    policy = {"max_attempts": ATTEMPTS, "delay_ms": 200, "multiplier": 1.0, "max_delay_ms": 200}
    address = house.setting(KEY, policy=policy, concurrency=2, breaker_m=10_000)
    house.enable(KEY)
    house.until(
        "both servers consume", lambda: house.call("GET", f"queues/{KEY}/")["consumers"] == len(SERVERS)
    )
    kills = _kill_in_turn(house, address)

    house.until("everything has ended", lambda: house.count(KEY) == [0], seconds=600)
    house.until(
        "spools are empty",
        lambda: all(row["spool_rows"] == 0 for row in house.pages("servers/")),
        seconds=600,
    )
    failed, protocols = house.failed_attempts(KEY), house.stored(KEY)
    print(f"{kills} kills · {sum(failed.values())} failed attempts · {len(protocols)} protocols")
    assert set(kills) == set(VICTIMS)
    assert len({row["id"] for row in protocols}) == len(protocols)
    stored = Counter((row["message_key"], row["attempt"]) for row in protocols)
    assert stored == failed, f"lost: {failed - stored}, too many: {stored - failed}"
    assert {row["server_name"] for row in protocols} == set(SERVERS)
    assert len(failed) == failed.total() and failed.total() % ATTEMPTS == 0, "no attempt was made twice"

    [activation] = house.pages(f"activations/?setting={KEY}")
    assert sum(run["failed"] for run in activation["runs"]) == failed.total(), "and counted once"


def _kill_in_turn(house: FaultHouse, address: str) -> Counter[str]:
    chance = random.Random(SECONDS)
    kills: Counter[str] = Counter()
    end = time.monotonic() + SECONDS
    with house.failing(address):
        for victim in victims(chance):
            time.sleep(chance.uniform(2, 5))
            house.kill_one(victim, pause=chance.uniform(0, 4))
            kills[victim] += 1
            if time.monotonic() > end and set(kills) == set(VICTIMS):
                return kills
    raise AssertionError("there is always another victim")
