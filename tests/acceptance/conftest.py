"""One running house for all acceptance tests: started by `./ma up`, looked at from outside, ended by `./ma down`."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.house import House


@pytest.fixture(scope="session")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """A fresh data folder with the demo running in it. Tests bring settings of their own."""
    house = House(Path(tmp_path_factory.mktemp("house")))
    try:
        house.up()
        yield house
    finally:
        house.down()
