"""A worker killed at each step of a job, on the real broker: another one finishes, each letter is in one
place."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from broker.amqp.consumer import AmqpConsumer
from broker.port import Message, Settle
from contract.typed import Typed
from tests.dlq import scenes
from tests.dlq.scenes import Scene
from tests.dlq.stage import Seen, Stage
from tests.dlq.worker_host import WorkerHost

pytestmark = pytest.mark.kill

COUNT = 5
GIVE_BACK = ("planned", "begun", "moved", "checking", "checked", "finishing")
DISCARD = ("begun", "moved", "checked", "indexing", "finishing")
EDIT = ("edit-planned", "edit-published", "edit-sent", "prepared", "moved", "checking")


@pytest.fixture
def scene(stage_of_all: Stage, host: WorkerHost) -> Scene:
    return Scene.make(stage_of_all, host, COUNT)


def done(told: dict[str, Any], count: int = COUNT) -> None:
    scenes.done(told, COUNT, count)


@pytest.mark.parametrize("where", GIVE_BACK)
@pytest.mark.parametrize("scope", ["all", "selection"])
def test_every_letter_is_given_back_once(scene: Scene, scope: str, where: str) -> None:
    letters = scene.letters if scope == "selection" else None
    job = scene.host.run("ask", key=scene.key, action="give_back", scope=scope, letters=letters)
    scene.host.run("work", job=job, crash_at=where)
    done(scene.host.run("work", job=job))
    assert scene.ids(scene.key, f"t.{scene.key}") == scene.names
    assert (scene.given_back(), scene.dead()) == (COUNT, 0)


@pytest.mark.parametrize("where", GIVE_BACK)
@pytest.mark.parametrize("scope", ["all", "selection"])
def test_every_letter_is_redirected_to_another_destination_once(scene: Scene, scope: str, where: str) -> None:
    target, letters = scene.target(), scene.letters if scope == "selection" else None
    job = scene.host.run(
        "ask", key=scene.key, action="redirect", scope=scope, letters=letters, target=target.key
    )
    scene.host.run("work", job=job, crash_at=where)
    told = scene.host.run("work", job=job)
    done(told)
    assert told["letters"] == {"given_back": COUNT}
    assert (target.arrived(), scene.census()) == (scene.names, {})


def test_of_a_thousand_each_is_redirected_once_though_workers_die_at_every_step(
    stage_of_all: Stage, host: WorkerHost
) -> None:
    scene = Scene.make(stage_of_all, host, 1000)
    target = scene.target()
    job = host.run("ask", key=scene.key, action="redirect", scope="all", target=target.key)
    for where in GIVE_BACK:
        host.run("work", job=job, crash_at=where)
    told = host.run("work", job=job)
    scenes.done(told, 1000, 1000)
    assert (target.arrived(), scene.census()) == (scene.names, {})


@pytest.mark.parametrize("then", ["looking", "confirming"])
def test_what_nobody_saw_leave_is_found_in_the_other_destination(scene: Scene, then: str) -> None:
    """The answer to a move died with its worker, so the subscription of the target tells."""
    target = scene.target()
    job = scene.host.run("ask", key=scene.key, action="redirect", scope="all", target=target.key)
    scene.host.run("work", job=job, crash_at="moved")
    scene.host.run("work", job=job, crash_at=then)
    done(scene.host.run("work", job=job))
    assert (target.arrived(), scene.census()) == (scene.names, {})


def test_a_job_whose_worker_dies_while_a_message_blocks_its_target_moves_nothing_before_that_is_solved(
    scene: Scene,
) -> None:
    target = scene.target()
    job = scene.host.run("ask", key=scene.key, action="redirect", scope="all", target=target.key)
    scene.host.run("block", key=target.key, attempt=3)
    scene.host.run("work", job=job, crash_at="stopping seen")
    assert scene.host.run("work", job=job, turns=2)["state"] == "running"
    scene.host.run("wait_long", job=job)
    scene.host.run("work", job=job, crash_at="stopping pauses")
    assert scene.host.run("tell", job=job)["state"] == "running"
    assert scene.host.run("work", job=job, turns=1)["state"] == "paused"
    assert (target.arrived(), scene.dead()) == ([], COUNT)
    scene.host.run("change", job=job, how="resume")
    assert scene.host.run("work", job=job, turns=2)["state"] == "running", "resumed it waits once more"
    scene.host.run("block", key=target.key, attempt=0)
    done(scene.host.run("work", job=job))
    assert (target.arrived(), scene.census()) == (scene.names, {})


@pytest.mark.parametrize("where", ["planned", "begun", "moved"])
def test_a_target_that_is_removed_after_a_kill_leaves_every_letter_in_one_place(
    scene: Scene, where: str
) -> None:
    """As of a queue that was removed by hand: the broker refuses the move, and nothing else happens."""
    target = scene.target()
    job = scene.host.run("ask", key=scene.key, action="redirect", scope="all", target=target.key)
    scene.host.run("work", job=job, crash_at=where)
    moved = target.arrived()
    scene.stage.management.call("broker", "destroyQueue", target.key, True, False)
    scene.host.run("remove_setting", key=target.key)
    told = scene.host.run("work", job=job)
    assert told["state"] == "failed" and target.key in told["problem"]
    assert told["items"].get("failed_to_move") == COUNT - len(moved) == told["dead"]
    assert scene.dead() == COUNT - len(moved)


@pytest.mark.parametrize("where", DISCARD)
def test_every_discarded_letter_is_in_the_bin_once_and_can_be_put_back(scene: Scene, where: str) -> None:
    job = scene.host.run("ask", key=scene.key, action="discard", scope="all")
    scene.host.run("work", job=job, crash_at=where)
    told = scene.host.run("work", job=job)
    done(told)
    assert (told["letters"], told["in_bin"]) == ({"discarded": COUNT}, COUNT)
    assert (len(scene.ids("DLQ.bin")), scene.given_back(), scene.dead()) == (COUNT, 0, 0)
    done(scene.host.run("work", job=scene.host.run("ask", key=scene.key, action="put_back", scope="all")))
    assert (scene.ids("DLQ.bin"), scene.given_back(), scene.dead()) == ([], 0, COUNT)


@pytest.mark.parametrize("where", EDIT)
def test_of_every_edited_letter_one_copy_is_given_back_and_the_original_lies_in_the_bin(
    scene: Scene, where: str
) -> None:
    job = scene.host.run("ask", key=scene.key, action="edit", scope="all")
    scene.host.run("work", job=job, crash_at=where)
    done(scene.host.run("work", job=job))
    browsed = scene.stage.queues.browser.browse(f"t.{scene.key}", scene.key, limit=100)
    copies = [each.message for each in browsed if each.message]
    assert sorted(str(copy.body.value) for copy in copies) == scene.names
    assert {copy.properties["edited"].value for copy in copies} == {"yes"}
    assert (len(scene.ids("DLQ.bin")), scene.given_back(), scene.dead()) == (COUNT, COUNT, 0)


@pytest.mark.parametrize("where", ["walked", "judged"])
def test_a_letter_that_vanished_before_its_move_is_told_apart(scene: Scene, where: str) -> None:
    job = scene.host.run("ask", key=scene.key, action="give_back", scope="selection", letters=scene.letters)
    scene.host.run("work", job=job, vanishing=True, crash_at=where)
    told = scene.host.run("work", job=job)
    done(told, COUNT - 1)
    assert told["letters"] == {"given_back": COUNT - 1, "gone": 1}
    assert (scene.given_back(), scene.dead()) == (COUNT - 1, 0)


@pytest.mark.parametrize(("first", "then"), [("moved", ""), ("begun", "wound up"), ("checked", "")])
def test_what_a_cancelled_job_moved_is_told_and_the_rest_stays(scene: Scene, first: str, then: str) -> None:
    job = scene.host.run("ask", key=scene.key, action="give_back", scope="all")
    scene.host.run("work", job=job, crash_at=first)
    scene.host.run("change", job=job, how="cancel")
    if then:
        scene.host.run("work", job=job, crash_at=then)
    told = scene.host.run("work", job=job)
    assert (told["state"], told["counts"]) == ("cancelled", told["items"])
    given_back = told["items"].get("given_back", 0)
    assert (scene.given_back(), scene.dead()) == (given_back, COUNT - given_back)
    assert told["dead"] == COUNT - given_back
    again = scene.host.run("work", job=scene.host.run("ask", key=scene.key, action="give_back", scope="all"))
    assert again["items"] == {"given_back": COUNT - given_back}
    assert scene.ids(scene.key, f"t.{scene.key}") == scene.names


def test_a_ladder_whose_worker_dies_at_each_of_its_writes_gives_every_letter_back_once(scene: Scene) -> None:
    scene.host.run("serve", key=scene.key, in_a_row=7)
    job = scene.host.run("ask", key=scene.key, action="give_back", scope="all", ladder=True)
    scene.host.run("work", job=job, crash_at="ladder counted")
    assert scene.given_back() == 0, "nothing moves before the counts are written"
    scene.host.run("work", job=job, turns=2)
    assert (scene.given_back(), scene.host.run("handle", key=scene.key)) == (1, 1)
    scene.host.run("work", job=job, crash_at="ladder known")
    scene.host.run("work", job=job, crash_at="ladder climbed")
    assert scene.given_back() == 1
    told = scene.host.run("work", job=job)
    assert (told["state"], told["items"], told["counts"]["handled"]) == ("done", {"given_back": COUNT}, 1)
    assert scene.ids(scene.key, f"t.{scene.key}") == scene.names


def test_a_job_whose_worker_dies_while_it_waits_for_consumers_moves_nothing_before_they_are_closed(
    scene: Scene,
) -> None:
    consumer = AmqpConsumer(scene.stage.account("kma", "amqp"), f"t.{scene.key}", scene.key, Seen(), 1)
    consumer.start()
    job = scene.host.run("ask", key=scene.key, action="give_back", scope="all")
    try:
        scene.stage.until_consumed(scene.key)
        scene.host.run("work", job=job, crash_at="stopping seen")
        assert scene.host.run("work", job=job, turns=2)["state"] == "running"
        scene.host.run("wait_long", job=job)
        scene.host.run("work", job=job, crash_at="stopping pauses")
        assert scene.host.run("tell", job=job)["state"] == "running"
        assert scene.host.run("work", job=job, turns=1)["state"] == "paused"
        assert (scene.given_back(), scene.dead()) == (0, COUNT)
    finally:
        consumer.stop()
    scene.host.run("change", job=job, how="resume")
    done(scene.host.run("work", job=job))
    assert scene.ids(scene.key, f"t.{scene.key}") == scene.names


def test_a_walk_that_died_with_its_worker_is_made_again_by_the_next_one(scene: Scene) -> None:
    # One letter that the index does not know: each job would walk to be planned.
    scene.stage.publish(f"t.{scene.key}", Message(body=Typed("string", "young")))
    scene.stage.consume(scene.key, 1, Settle.REJECT)
    parts = scene.letters[:2], scene.letters[2:]
    asked = [
        scene.host.run("ask", key=scene.key, action="give_back", scope="selection", letters=part)
        for part in parts
    ]
    scene.host.run("work", job=asked[0], crash_at="walked to plan")
    assert (scene.given_back(), scene.dead()) == (0, COUNT + 1)
    told = [scene.host.run("work", job=job) for job in asked]
    assert [each["items"] for each in told] == [{"given_back": 2}, {"given_back": 3}]
    assert [each["state"] for each in told] == ["done", "done"]
    assert scene.ids(scene.key, f"t.{scene.key}") == scene.names


def test_a_paused_job_goes_on_where_it_was_killed(scene: Scene) -> None:
    job = scene.host.run("ask", key=scene.key, action="give_back", scope="all")
    scene.host.run("work", job=job, crash_at="moved")
    scene.host.run("change", job=job, how="pause")
    assert scene.host.run("work", job=job, turns=2)["state"] == "paused"
    assert scene.given_back() == 2, "nothing moves while it is paused"
    scene.host.run("change", job=job, how="resume")
    done(scene.host.run("work", job=job))
    assert (scene.given_back(), scene.dead()) == (COUNT, 0)


@pytest.fixture(scope="module")
def other(host: WorkerHost) -> Iterator[WorkerHost]:
    """Workers beside those of `host`."""
    other = WorkerHost(host.processes)
    yield other
    other.close()


@pytest.mark.parametrize("where", ["begun", "moved", "checked"])
def test_a_worker_that_wakes_up_after_another_one_did_its_work_changes_nothing(
    scene: Scene, other: WorkerHost, tmp_path: Path, where: str
) -> None:
    job = scene.host.run("ask", key=scene.key, action="give_back", scope="all")
    with scene.host.held("work", where, tmp_path, times=2, job=job) as sleeper:
        sleeper.stands()
        told = other.run("work", job=job)
        again = sleeper.goes_on()
    done(told)
    assert again == told
    assert scene.ids(scene.key, f"t.{scene.key}") == scene.names
    assert (scene.given_back(), scene.dead()) == (COUNT, 0)
