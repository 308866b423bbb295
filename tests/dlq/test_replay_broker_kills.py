"""The broker killed in the middle of a job: it is started again, and the job goes on by itself to its end."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.dlq.processes import Processes
from tests.dlq.scenes import Scene, done
from tests.dlq.stage import Stage
from tests.dlq.worker_host import WorkerHost
from tests.services import ArtemisService, throw_away_folder

pytestmark = pytest.mark.kill

SLICE, COUNT = 100, 300


@pytest.fixture(scope="module")
def broker() -> Iterator[ArtemisService]:
    """One that nobody else uses."""
    with throw_away_folder("artemis") as folder:
        service = ArtemisService.create(folder / "broker")
        service.start()
        yield service
        service.stop()


@pytest.fixture
def stage(broker: ArtemisService) -> Iterator[Stage]:
    stage = Stage(broker)
    yield stage
    stage.close()


@pytest.fixture(scope="module")
def host(broker: ArtemisService, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorkerHost]:
    stage = Stage(broker)
    host = WorkerHost(Processes(tmp_path_factory.mktemp("broker-kills"), stage))
    stage.close()
    yield host
    host.close()


# The second of three slices: its figures are written down and nothing is asked; it moves at this moment; the
# broker has moved it and nothing of that is written down.
@pytest.mark.parametrize(("at", "went"), [("begun", SLICE), ("asks", None), ("moved", 2 * SLICE)])
def test_each_letter_is_given_back_once(
    broker: ArtemisService, stage: Stage, host: WorkerHost, tmp_path: Path, at: str, went: int | None
) -> None:
    scene = Scene.make(stage, host, COUNT)
    before = scene.census()
    assert before == {f"DLQ.{scene.key}": Counter(scene.names)}
    job = host.run("ask", key=scene.key, action="give_back", scope="all")
    with host.held("tend", at, tmp_path, times=2, asked=[job], size=SLICE) as worker:
        worker.stands()
        assert went is None or scene.given_back() == went
        broker.kill()
        broker.start()
        (told,) = worker.goes_on()
    done(told, COUNT, COUNT)
    assert (told["dead"], told["letters"]) == (0, {"given_back": COUNT})
    scene.stage = Stage(broker)
    assert scene.census() == {scene.key: before[f"DLQ.{scene.key}"]}
    assert (scene.given_back(), scene.dead()) == (COUNT, 0)
    scene.stage.close()


@pytest.mark.parametrize("at", ["begun", "asks", "moved"])
def test_each_letter_is_redirected_to_another_destination_once(
    broker: ArtemisService, stage: Stage, host: WorkerHost, tmp_path: Path, at: str
) -> None:
    scene = Scene.make(stage, host, COUNT)
    target = scene.target()
    job = host.run("ask", key=scene.key, action="redirect", scope="all", target=target.key)
    with host.held("tend", at, tmp_path, times=2, asked=[job], size=SLICE) as worker:
        worker.stands()
        broker.kill()
        broker.start()
        (told,) = worker.goes_on()
    done(told, COUNT, COUNT)
    assert (told["dead"], told["letters"]) == (0, {"given_back": COUNT})
    scene.stage = Stage(broker)
    assert (target.arrived(), scene.census()) == (scene.names, {})
    scene.stage.close()


# At this moment: some of its transactions are through and others are not, or all, or none.
@pytest.mark.parametrize("at", ["begun", "asks", "asks", "asks", "moved"])
def test_every_second_letter_is_given_back_once_and_the_others_stay(
    broker: ArtemisService, stage: Stage, host: WorkerHost, tmp_path: Path, at: str
) -> None:
    scene = Scene.make(stage, host, COUNT)
    chosen, half = scene.letters[::2], COUNT // 2
    job = host.run("ask", key=scene.key, action="give_back", scope="selection", letters=chosen)
    with host.held("tend", at, tmp_path, asked=[job], size=SLICE) as worker:
        worker.stands()
        broker.kill()
        broker.start()
        (told,) = worker.goes_on()
    done(told, half, half)
    scene.stage = Stage(broker)
    assert scene.census() == {
        scene.key: Counter(scene.names[::2]),
        f"DLQ.{scene.key}": Counter(scene.names[1::2]),
    }
    scene.stage.close()
