"""Erasing, killed before the broker is asked, after it, and before the protocols: the next run finishes, and
the value is nowhere, neither in the database nor at the broker."""

from pathlib import Path

import pytest

from tests.dlq.scenes import Scene, done
from tests.dlq.stage import Stage
from tests.dlq.worker_host import WorkerHost

pytestmark = pytest.mark.kill

COUNT = 4


@pytest.fixture
def scene(stage_of_all: Stage, host: WorkerHost) -> Scene:
    """Two of its letters lie in the bin; the first of either place is to be erased."""
    scene = Scene.make(stage_of_all, host, COUNT)
    job = host.run("ask", key=scene.key, action="discard", scope="selection", letters=scene.letters[2:])
    done(host.run("work", job=job), 2, 2)
    return scene


# What lies there when it died: of the dead-letter queue, of the bin.
@pytest.mark.parametrize(
    ("at", "dead", "binned"),
    [("erase: marked", 2, 2), ("erase: removed", 1, 2), ("erase: letters done", 1, 2)],
)
def test_the_next_run_finishes(scene: Scene, tmp_path: Path, at: str, dead: int, binned: int) -> None:
    first, second = scene.names[0], scene.names[2]
    with scene.host.held("erase", at, tmp_path, message_key=first, key=scene.key) as worker:
        worker.is_killed()
    assert (scene.dead(), len(scene.ids("DLQ.bin"))) == (dead, binned)

    for name in (first, second):
        told = scene.host.run("erase", message_key=name, key=scene.key)
        assert told["left"] == [] and not told["found"], "no column of any table has it"
    assert (scene.ids(f"DLQ.{scene.key}"), scene.ids("DLQ.bin")) == ([scene.names[1]], [scene.names[3]])
    again = scene.host.run("erase", message_key=first, key=scene.key)
    assert again["counts"] == {}, "nothing is left to erase"
    walked = scene.host.run("walk_bin")
    assert (walked["added"], walked["returned"], walked["gone"]) == (0, 0, 0), "rows and broker agree"
