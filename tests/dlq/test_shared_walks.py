"""Many small jobs of one dead-letter queue: how often it is walked, on the real broker."""

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from django.contrib.auth.models import User

from agents.models import LaunchSetting, Pool
from broker.port import Message, Settle
from contract.typed import Typed
from dlq import tasks
from dlq.models import Action, DeadLetter, ItemState, JobState, ReplayItem, ReplayJob, Scope
from tests.dlq.jobs import begun, run_replay
from tests.dlq.stage import Stage
from tests.web.rows import make_setting

pytestmark = pytest.mark.django_db(transaction=True)
JOBS, EACH = 4, 30


class CountingBrowser:
    """The browser of the real broker; `walks` counts by queue how often it reads one from its head to its
    end."""

    def __init__(self, inner: Any) -> None:
        self._inner, self.walks = inner, Counter[str]()

    def walk(self, address: str, queue: str) -> Iterator[list[bytes]]:
        self.walks[queue] += 1
        yield from self._inner.walk(address, queue)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class Scene:
    """JOBS times EACH letters that the index knows, and one more that it does not: it never agrees with the
    queue."""

    def __init__(self, stage: Stage, browser: CountingBrowser) -> None:
        self.stage, self.browser, self.key = stage, browser, stage.key("w")
        self.die(JOBS * EACH)
        stage.follow(lambda: self.rows().count() == JOBS * EACH)
        self.die(1)
        self.setting: LaunchSetting = make_setting(
            Pool.objects.create(name="demo"), self.key, address=f"t.{self.key}"
        )
        self.by = User.objects.create_superuser("anna", password=None)

    def rows(self) -> Any:
        return DeadLetter.objects.filter(setting_key=self.key).order_by("orig_message_id")

    def die(self, count: int) -> None:
        self.stage.publish(f"t.{self.key}", *[Message(body=Typed("string", f"m {n}")) for n in range(count)])
        self.stage.consume(self.key, count, Settle.REJECT)

    def ask(self, letters: list[int], action: Action = Action.GIVE_BACK) -> ReplayJob:
        return begun(self.setting, action=action, scope=Scope.SELECTION, letters=letters, by=self.by)

    def work(self, job: ReplayJob) -> ReplayJob:
        end = time.monotonic() + 60
        while job.finished_at is None:
            assert time.monotonic() < end, (job.state, job.wait_reason)
            self.turn(job)
        return job

    def turn(self, job: ReplayJob) -> None:
        ReplayJob.objects.filter(pk=job.pk).update(lease_until=None)
        run_replay(str(job.pk))
        job.refresh_from_db()
        time.sleep(0.05)


@pytest.fixture
def scene(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Scene:
    browser = CountingBrowser(stage.queues.browser)
    monkeypatch.setattr(tasks, "letter_queues", lambda: replace(stage.queues, browser=browser))
    monkeypatch.setattr("console.jobs.engine.send", lambda *_, **__: True)
    return Scene(stage, browser)


def test_small_jobs_that_wait_for_one_queue_walk_it_once(scene: Scene) -> None:
    ids = list(scene.rows().values_list("pk", flat=True))
    jobs = [scene.ask(ids[start : start + EACH]) for start in range(0, len(ids), EACH)]
    done = [scene.work(job) for job in jobs]
    assert [(job.state, job.counts["given_back"]) for job in done] == [(JobState.DONE, EACH)] * JOBS
    assert (scene.stage.count(scene.key), scene.stage.count(f"DLQ.{scene.key}")) == (JOBS * EACH, 1)
    assert scene.browser.walks == {f"DLQ.{scene.key}": 1}


def test_small_jobs_that_discard_share_the_walk_that_indexes_the_trash(scene: Scene) -> None:
    scene.stage.follow(lambda: scene.rows().count() == JOBS * EACH + 1)  # nothing is walked to plan them
    ids = list(scene.rows().values_list("pk", flat=True))
    jobs = [scene.ask(ids[start : start + EACH], Action.DISCARD) for start in range(0, JOBS * EACH, EACH)]
    end = time.monotonic() + 60
    while any(job.finished_at is None for job in jobs):
        assert time.monotonic() < end, [(job.state, job.wait_reason) for job in jobs]
        for job in jobs:
            scene.turn(job)
    assert [(job.state, job.counts["given_back"]) for job in jobs] == [(JobState.DONE, EACH)] * JOBS
    binned = DeadLetter.objects.filter(queue="DLQ.bin", setting_key=scene.key, state="dead")
    assert binned.count() == JOBS * EACH
    assert scene.browser.walks["DLQ.bin"] == 1


def test_a_letter_that_died_after_a_walk_is_not_missing_for_it(scene: Scene) -> None:
    ids = list(scene.rows().values_list("pk", flat=True))
    scene.work(scene.ask(ids[:EACH]))
    scene.stage.follow(lambda: scene.rows().count() == JOBS * EACH + 1)
    scene.die(1)  # the index does not agree again
    young = list(scene.rows().values_list("pk", flat=True))[-1]
    job = scene.work(scene.ask([*ids[EACH : 2 * EACH], young]))
    assert (job.state, job.counts["given_back"]) == (JobState.DONE, EACH + 1)


def test_a_letter_that_left_after_a_shared_walk_is_told_as_taken_elsewhere(scene: Scene) -> None:
    ids = list(scene.rows().values_list("pk", flat=True))
    first, second = scene.ask(ids[:EACH]), scene.ask(ids[EACH : 2 * EACH])
    scene.work(first)
    lost = DeadLetter.objects.get(pk=ids[EACH])
    removed = scene.stage.management.call(
        f"queue.DLQ.{scene.key}", "removeMessages", f"_AMQ_ORIG_MESSAGE_ID = {lost.orig_message_id}"
    )
    assert removed == 1
    job = scene.work(second)
    assert (job.state, job.counts["given_back"]) == (JobState.DONE, EACH - 1)
    assert ReplayItem.objects.get(job=job, letter=lost).state == ItemState.TAKEN_ELSEWHERE
