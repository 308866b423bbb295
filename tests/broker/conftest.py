"""One suite over both adapters."""

from collections.abc import Iterator

import pytest

from tests.broker.houses import House, MemoryHouse, RealHouse
from tests.services import ArtemisService, throw_away_folder
from tests.tls import Authority


@pytest.fixture
def real(artemis: ArtemisService) -> Iterator[RealHouse]:
    house = RealHouse(artemis)
    yield house
    house.close()


@pytest.fixture(scope="session")
def tls_artemis(child_processes: None) -> Iterator[ArtemisService]:
    """A broker that speaks TLS only."""
    with throw_away_folder("tls") as folder:
        service = ArtemisService.create(folder / "broker", authority=Authority.create(folder / "authority"))
        service.start()
        yield service
        service.stop()


@pytest.fixture(
    params=[
        pytest.param("artemis", marks=pytest.mark.broker),
        pytest.param("tls_artemis", marks=pytest.mark.night),
        "memory",
    ]
)
def house(request: pytest.FixtureRequest) -> Iterator[House]:
    made: House
    made = MemoryHouse() if request.param == "memory" else RealHouse(request.getfixturevalue(request.param))
    yield made
    made.close()
