"""Another consumer takes a letter right before its move, and the worker is killed: on the real broker, what
we moved is said to be replayed, and never what the other one took."""

import pytest

from tests.dlq.scenes import Scene
from tests.dlq.stage import Stage
from tests.dlq.worker_host import WorkerHost

pytestmark = pytest.mark.kill

COUNT = 7
# Slices of two: the second one comes out short.
SECOND = 2
# Steps after the theft, once the answer of the short move was committed.
AFTERWARDS = ("walked", "judged", "looking", "confirming", "finishing")


@pytest.fixture
def scene(stage_of_all: Stage, host: WorkerHost) -> Scene:
    return Scene.make(stage_of_all, host, COUNT)


def check(scene: Scene, job: str, *, answered: bool) -> None:
    """One letter was stolen. `answered`: so was the move that came out short, and it is known that we did not
    take that letter; else it is unknown in the end."""
    went = scene.ids(scene.key, f"t.{scene.key}")
    stolen = [name for name in scene.names if name not in went]
    assert (len(stolen), scene.dead()) == (1, 0)
    states = scene.host.run("states", job=job)
    assert sorted(name for name, (state, _) in states.items() if state == "given_back") == went
    assert states[stolen[0]] == ["taken_elsewhere" if answered else "unconfirmed", ""]
    later = scene.host.run("states", job=job, hours=1.01)
    assert later[stolen[0]] == (["taken_elsewhere", ""] if answered else ["unconfirmed", "unknown"])
    assert "" not in {outcome for state, outcome in later.values() if state != "taken_elsewhere"}, (
        "nobody waits"
    )


@pytest.mark.parametrize("scope", ["all", "selection"])
def test_what_another_consumer_took_is_told_apart_from_what_was_moved(scene: Scene, scope: str) -> None:
    letters = scene.letters if scope == "selection" else None
    job = scene.host.run("ask", key=scene.key, action="give_back", scope=scope, letters=letters)
    assert scene.host.run("work", job=job, stolen_of=SECOND)["state"] == "done"
    check(scene, job, answered=True)


@pytest.mark.parametrize("where", AFTERWARDS)
def test_a_killed_worker_never_says_that_a_stolen_letter_was_moved(scene: Scene, where: str) -> None:
    job = scene.host.run("ask", key=scene.key, action="give_back", scope="all")
    scene.host.run("work", job=job, stolen_of=SECOND, crash_at=where)
    assert scene.host.run("work", job=job)["state"] == "done"
    check(scene, job, answered=True)


def test_of_a_move_whose_answer_died_with_its_worker_the_stolen_letter_is_unknown(scene: Scene) -> None:
    job = scene.host.run("ask", key=scene.key, action="give_back", scope="all")
    scene.host.run("work", job=job, stolen_of=1, crash_at="moved")
    assert scene.host.run("work", job=job)["state"] == "done"
    check(scene, job, answered=False)


def test_a_discarded_letter_that_another_consumer_took_is_not_said_to_be_in_the_bin(scene: Scene) -> None:
    job = scene.host.run("ask", key=scene.key, action="discard", scope="all")
    scene.host.run("work", job=job, stolen_of=SECOND)
    binned = scene.ids("DLQ.bin")
    states = scene.host.run("states", job=job)
    assert sorted(name for name, (state, _) in states.items() if state == "given_back") == binned
    assert [state for name, (state, _) in states.items() if name not in binned] == ["taken_elsewhere"]
