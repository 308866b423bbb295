"""Dead letters on the real broker."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.services import ArtemisService, running_artemis

if TYPE_CHECKING:
    from tests.dlq.stage import Stage
    from tests.dlq.worker_host import WorkerHost


@pytest.fixture(scope="session")
def artemis() -> Iterator[ArtemisService]:
    """Without the queues and dead letters of other tests."""
    with running_artemis() as service:
        yield service


@pytest.fixture
def stage(artemis: ArtemisService) -> Iterator["Stage"]:
    from tests.dlq.stage import Stage  # pytest reads this file before Django is set up

    stage = Stage(artemis)
    stage.drain_feed()
    yield stage
    stage.close()


@pytest.fixture(scope="module")
def stage_of_all(artemis: ArtemisService) -> Iterator["Stage"]:
    from tests.dlq.stage import Stage

    stage = Stage(artemis)
    stage.drain_feed()
    yield stage
    stage.close()


@pytest.fixture(scope="module")
def host(
    child_processes: None, stage_of_all: "Stage", tmp_path_factory: pytest.TempPathFactory
) -> Iterator["WorkerHost"]:
    """Workers of a database of their own."""
    from tests.dlq.processes import Processes
    from tests.dlq.worker_host import WorkerHost

    host = WorkerHost(Processes(tmp_path_factory.mktemp("workers"), stage_of_all))
    yield host
    host.close()


@pytest.fixture
def busy_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sweep that looks all the time."""
    from dlq.index import sweep

    for name in ("COMPARED_EVERY", "AGAIN", "SHARE"):
        monkeypatch.setattr(sweep, name, 0.0)
