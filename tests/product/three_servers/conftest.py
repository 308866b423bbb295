"""One hall with three KMAs for all tests of launching. Each test finds every server alive, and brings its
settings."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.product.three_servers.hall import Hall


@pytest.fixture(scope="package")
def running_hall(child_processes: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hall]:
    hall = Hall(Path(tmp_path_factory.mktemp("hall")), ("hall-a", "hall-b", "hall-c"))
    try:
        hall.up()
        yield hall
    finally:
        hall.down()


@pytest.fixture
def hall(running_hall: Hall) -> Iterator[Hall]:
    """Afterwards nothing is enabled and nothing is cut, frozen or dead."""
    running_hall.all_alive()
    yield running_hall
    for kma in running_hall.kmas.values():
        kma.mend()
        if kma.runs:
            kma.wake()
    for setting in running_hall.pages("settings/?enabled=true"):
        running_hall.disable(setting["key"])
