"""A job that walks a dead-letter queue, and the one behind it: what REST, page and command say meanwhile."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client
from django.utils import timezone

from console.jobs.engine import claim
from dlq import tasks
from dlq.cli.rest import call_api
from dlq.models import JobState, ReplayJob
from tests.dlq.jobs import replays, run_replay
from tests.dlq.stage import Stage
from tests.dlq.test_shared_walks import EACH, JOBS, CountingBrowser, Scene

pytestmark = pytest.mark.django_db(transaction=True)


class InterruptedBrowser(CountingBrowser):
    """Calls `within` once while it walks a queue: after the first messages, before the end is seen."""

    within: Callable[[], None] | None = None

    def walk(self, address: str, queue: str) -> Iterator[list[bytes]]:
        for piece in super().walk(address, queue):
            yield piece
            if self.within is not None:
                within, self.within = self.within, None
                within()


@pytest.fixture
def scene(stage: Stage, monkeypatch: pytest.MonkeyPatch, settings: Any) -> Scene:
    Path(settings.STATIC_ROOT).mkdir(parents=True, exist_ok=True)
    plain = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
    settings.STORAGES = {**settings.STORAGES, "staticfiles": plain}
    browser = InterruptedBrowser(stage.queues.browser)
    monkeypatch.setattr(tasks, "letter_queues", lambda: replace(stage.queues, browser=browser))
    monkeypatch.setattr("console.jobs.engine.send", lambda *_, **__: True)
    monkeypatch.setattr("dlq.replay.worker.agreement.AT_ONCE", 10)
    monkeypatch.setattr("dlq.replay.worker.agreement.SIGN_EVERY", 0.0)
    return Scene(stage, browser)


def asked(by: User, job: ReplayJob) -> dict[str, Any]:
    found: dict[str, Any] = call_api(by, "GET", f"replays/{job.pk}/")
    return found


def page(by: User, job: ReplayJob) -> str:
    client = Client()
    client.force_login(by)
    return client.get(f"/replays/{job.pk}/").content.decode()


def shown(job: ReplayJob) -> str:
    out = StringIO()
    call_command("dlq", "job", str(job.pk), "--as", "anna", stdout=out)
    return out.getvalue()


def test_while_a_job_walks_its_queue_it_and_the_one_behind_it_say_why_nothing_moves(scene: Scene) -> None:
    ids = list(scene.rows().values_list("pk", flat=True))
    first, second = scene.ask(ids[:EACH]), scene.ask(ids[EACH : 2 * EACH])
    during: dict[str, Any] = {"before": asked(scene.by, second)["wait_reason"]}

    def look() -> None:
        run_replay(str(second.pk))  # a worker that is free takes it up
        during["rest"] = [asked(scene.by, job) for job in (first, second)]
        during["pages"] = [page(scene.by, job) for job in (first, second)]
        during["command"] = shown(first)

    vars(scene.browser)["within"] = look
    scene.work(first)
    assert [one["wait_reason"] for one in during["rest"]] == ["walking", "another_job"]
    assert during["before"] == "queued", "no worker had seen it"
    walk = during["rest"][0]["walk"]
    assert (walk["queue"], walk["seen"] > 0) == (f"DLQ.{scene.key}", True)
    assert (during["rest"][1]["walk"], during["rest"][1]["started_at"]) == (None, None)
    words = f"is scanning the queue DLQ.{scene.key}"
    assert [words in text for text in during["pages"]] == [True, True]
    assert f"scan       DLQ.{scene.key}: " in during["command"]
    after = asked(scene.by, first)
    assert (after["state"], after["wait_reason"], after["walk"]) == ("done", "", None)
    assert scene.work(second).counts["given_back"] == EACH
    assert scene.stage.count(scene.key) == 2 * EACH and JOBS > 2


def test_a_walk_whose_worker_died_is_not_said_to_go_on(scene: Scene) -> None:
    ids = list(scene.rows().values_list("pk", flat=True))
    job, now = scene.ask(ids[:EACH]), timezone.now()
    ReplayJob.objects.filter(pk=job.pk).update(
        state=JobState.RUNNING,
        walking_since=now - timedelta(minutes=2),
        lease_until=now - timedelta(seconds=1),
    )
    dead = asked(scene.by, job)
    assert (dead["wait_reason"], dead["walk"]) == ("queued", None)
    assert claim(replays(scene.stage.queues), job.pk, now)
    job.refresh_from_db()
    assert job.walking_since is None
