"""Dead letters on the real broker."""

from collections.abc import Iterator

import pytest

from tests.dlq.stage import Stage
from tests.services import ArtemisService


@pytest.fixture
def stage(artemis: ArtemisService) -> Iterator[Stage]:
    stage = Stage(artemis)
    stage.drain_feed()
    yield stage
    stage.close()
