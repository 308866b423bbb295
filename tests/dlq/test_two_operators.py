"""Two people who give back the same letters at once, from two processes, and two workers who do what they
asked for."""

from collections import Counter
from typing import Any

from tests.dlq.scenes import Scene
from tests.dlq.stage import Stage
from tests.dlq.worker_host import WorkerHost

COUNT = 30
ANNA, BERT = slice(0, 12), slice(8, 20)
BOTH, ALONE = slice(8, 12), 24


def asked(name: str, scene: Scene, mine: slice) -> dict[str, Any]:
    """Each selects letters, some of which both select; names one that both name; wants all; and those of both
    again."""
    letters = scene.letters
    wishes = [
        ("selection", letters[mine]),
        ("one", [letters[ALONE]]),
        ("all", []),
        ("selection", letters[BOTH]),
    ]
    return {"key": scene.key, "who": name, "wishes": wishes}


def jobs_of(told: list[str]) -> list[str]:
    return [each for each in told if "-" in each]


def test_each_letter_is_moved_once_and_every_try_is_told(stage_of_all: Stage, host: WorkerHost) -> None:
    scene = Scene.make(stage_of_all, host, COUNT)
    host.run("people", names=["anna", "bert"])
    anna, bert = host.at_once("operate", asked("anna", scene, ANNA), asked("bert", scene, BERT))
    assert len(jobs_of([anna[0], bert[0]])) == 2, "who selects gets what the other has not"
    for place, refusal in ((1, "outstanding"), (2, "already_running")):
        assert len(jobs_of([anna[place], bert[place]])) == 1 and refusal in (anna[place], bert[place])
    assert anna[3] == bert[3] == "outstanding"
    books = host.run("books", key=scene.key)
    selected = {str(letter) for letter in (*scene.letters[:20], scene.letters[ALONE])}
    assert books["outstanding"] == dict.fromkeys(selected, 1), "of each letter one replay is outstanding"
    refused = {name: len(told) - len(jobs_of(told)) for name, told in (("anna", anna), ("bert", bert))}
    assert books["refused"] == refused and sum(refused.values()) == 4
    jobs = jobs_of(anna + bert)
    assert books["done"] == sorted(jobs)

    told, _ = host.at_once("tend", {"asked": jobs}, {"asked": jobs})

    assert scene.census() == {scene.key: Counter(scene.names)}
    assert host.run("books", key=scene.key)["given_back"] == {str(letter): 1 for letter in scene.letters}
    for job in told:
        went = job["counts"]["given_back"]
        assert (job["state"], job["problem"], job["total"]) == ("done", "", went)
        if job["scope"] == "selection":
            assert job["counts"] == job["items"] and job["skipped"].get("outstanding", 0) == 12 - went
    assert sum(job["counts"]["given_back"] for job in told) == COUNT
    assert sum(job["skipped"].get("outstanding", 0) for job in told if job["scope"] == "selection") == 4
