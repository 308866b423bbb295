"""A stage for one run, and containers on the real broker: ended after the test whatever happened in it."""

from collections.abc import Callable, Iterator, MutableMapping
from pathlib import Path
from typing import Any

import pytest
import structlog.testing

from tests.broker.houses import House, MemoryHouse, RealHouse
from tests.kma.fake_ma import FakeMa
from tests.kma.fakes import Stage
from tests.kma.worker import Worker
from tests.services import ArtemisService

Make = Callable[..., Stage]
StartWorker = Callable[..., Worker]
Lines = list[MutableMapping[str, Any]]


@pytest.fixture
def stage(child_processes: None, tmp_path: Path) -> Iterator[Make]:
    """`stage(messages, **fields of the desired run)`: the run has been started."""
    stages: list[Stage] = []

    def make(messages: list[bytes], **fields: Any) -> Stage:
        folder = tmp_path / str(len(stages))
        folder.mkdir()
        made = Stage(folder, messages, **fields)
        stages.append(made)
        made.run.start()
        return made

    yield make
    for one in stages:
        one.end()


@pytest.fixture
def lines() -> Iterator[Lines]:
    """What is logged during the test, whoever has configured the logs of this process."""
    with structlog.testing.capture_logs() as captured:
        yield captured


@pytest.fixture
def ma(child_processes: None) -> Iterator[FakeMa]:
    fake = FakeMa()
    yield fake
    fake.close()


@pytest.fixture
def house(artemis: ArtemisService) -> Iterator[RealHouse]:
    one = RealHouse(artemis)
    yield one
    one.close()


@pytest.fixture
def start(child_processes: None, tmp_path: Path, ma: FakeMa, house: RealHouse) -> Iterator[StartWorker]:
    """`start(ma=…, redis_url=…, environment={…})`: a whole container, in the folder of the test."""
    started: list[Worker] = []

    def make(**options: Any) -> Worker:
        environment = options.pop("environment", {})
        worker = Worker(tmp_path, options.pop("ma", ma), house.kma, **options)
        worker.environment.update(environment)
        started.append(worker)
        worker.start()
        return worker

    yield make
    for worker in started:
        worker.stop()


@pytest.fixture(params=[pytest.param("real", marks=pytest.mark.broker), "memory"])
def either(request: pytest.FixtureRequest) -> Iterator[House]:
    if request.param == "real":
        yield request.getfixturevalue("house")
        return
    made = MemoryHouse()
    yield made
    made.close()
