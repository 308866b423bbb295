"""One house for all tests of the product, looked at from outside: `./ma up` starts it and `./ma down` ends
it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.product.house import House


@pytest.fixture(scope="session")
def house(child_processes: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """A fresh data folder with the demo running in it. Tests bring settings of their own."""
    house = House(Path(tmp_path_factory.mktemp("house")))
    try:
        house.up()
        yield house
    finally:
        house.down()
