"""Dead letters on the real broker."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.services import ArtemisService

if TYPE_CHECKING:
    from tests.dlq.stage import Stage


@pytest.fixture
def stage(artemis: ArtemisService) -> Iterator["Stage"]:
    from tests.dlq.stage import Stage  # pytest reads this file before Django is set up

    stage = Stage(artemis)
    stage.drain_feed()
    yield stage
    stage.close()


@pytest.fixture
def busy_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sweep that looks all the time."""
    from dlq import sweep

    for name in ("LOOK_EVERY", "AGAIN", "SHARE"):
        monkeypatch.setattr(sweep, name, 0.0)
