"""One suite over both adapters."""

from collections.abc import Iterator

import pytest

from tests.broker.houses import House, MemoryHouse, RealHouse
from tests.services import ArtemisService


@pytest.fixture
def real(artemis: ArtemisService) -> Iterator[RealHouse]:
    house = RealHouse(artemis)
    yield house
    house.close()


@pytest.fixture(params=[pytest.param("real", marks=pytest.mark.broker), "memory"])
def house(request: pytest.FixtureRequest) -> Iterator[House]:
    made: House
    made = RealHouse(request.getfixturevalue("artemis")) if request.param == "real" else MemoryHouse()
    yield made
    made.close()
