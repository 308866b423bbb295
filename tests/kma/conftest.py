"""A stage for one run, ended after the test whatever happened in it."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kma.fake_ma import FakeMa
from tests.kma.fakes import Stage

Make = Callable[..., Stage]


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Make]:
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
def ma() -> Iterator[FakeMa]:
    fake = FakeMa()
    yield fake
    fake.close()
