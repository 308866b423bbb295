"""The process that empties the bin, killed between its two steps and after them: another one finishes."""

from pathlib import Path

import pytest

from tests.dlq.scenes import Scene, done
from tests.dlq.stage import Stage
from tests.dlq.worker_host import WorkerHost

pytestmark = pytest.mark.kill

COUNT, OLD = 5, 3


@pytest.fixture
def scene(stage_of_all: Stage, host: WorkerHost) -> Scene:
    """Of its letters, which all lie in the bin, the time of the first OLD is over."""
    scene = Scene.make(stage_of_all, host, COUNT)
    job = host.run("ask", key=scene.key, action="discard", scope="all")
    done(host.run("work", job=job), COUNT, COUNT)
    host.run("grow_old", key=scene.key, names=scene.names[:OLD])
    return scene


# The rows say that they are gone and they lie there; they are gone.
@pytest.mark.parametrize(("at", "lie_there"), [("bin: marked", COUNT), ("bin: removed", COUNT - OLD)])
def test_what_expired_is_gone_and_nothing_else(scene: Scene, tmp_path: Path, at: str, lie_there: int) -> None:
    old, young = scene.names[:OLD], scene.names[OLD:]
    after = {"gone": old, "dead": young}
    with scene.host.held("empty_bin", at, tmp_path, key=scene.key) as worker:
        worker.is_killed()
    assert len(scene.ids("DLQ.bin")) == lie_there

    assert scene.host.run("empty_bin", key=scene.key) == after, "the rows say so already"
    scene.host.run("sweep_bin")
    assert scene.host.run("empty_bin", key=scene.key) == after
    assert (scene.ids("DLQ.bin"), scene.dead(), scene.given_back()) == (young, 0, 0)
    walked = scene.host.run("walk_bin")
    assert (walked["added"], walked["returned"], walked["gone"]) == (0, 0, 0), "rows and broker agree"

    done(
        scene.host.run("work", job=scene.host.run("ask", key=scene.key, action="put_back", scope="all")), 2, 2
    )
    assert (scene.ids("DLQ.bin"), scene.ids(f"DLQ.{scene.key}")) == ([], young)
