"""Replaying to a setting that was disabled a moment ago: what the old run still consumes gets nothing of
it."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from agents.models import LaunchSetting, Pool, Server
from agents.settings.enable import disable_setting, enable_setting
from broker.amqp.consumer import AmqpConsumer
from broker.amqp.publisher import AmqpPublisher
from broker.port import Delivery, Message, Outgoing, Settle
from console.audit.models import AuditEntry
from console.reasons import said
from contract.redelivery import RedeliveryPolicy
from contract.typed import Typed
from dlq import tasks
from dlq.models import Action, DeadLetter, JobState, ReplayJob, Scope
from dlq.replay.creation import begin_replay
from dlq.replay.preflight.rules import CODES
from dlq.replay.requests import ReplayRequest
from tests.dlq.jobs import run_replay
from tests.dlq.stage import Stage
from tests.web.reports import bearer_of
from tests.web.rows import make_alive, make_setting

pytestmark = pytest.mark.django_db(transaction=True)
COUNT = 100
# A server learns that a setting is off from its next heartbeat.
LEARNS_LATER = 3.0


class OldRun:
    """The consumer of a run that the site has disabled already: it goes on with whatever comes."""

    def __init__(self, stage: Stage, key: str) -> None:
        self.taken: list[bytes] = []
        self.consumer = AmqpConsumer(stage.account("kma", "amqp"), f"t.{key}", key, self, 10)
        self.consumer.start()

    def opened(self) -> None: ...

    def lost(self, reason: str, permanent: bool) -> None: ...

    def delivered(self, delivery: Delivery) -> None:
        self.taken.append(delivery.encoded)
        self.consumer.settle([(delivery.tag, Settle.ACCEPT)])

    def settled(self, tag: int, problem: str | None) -> None: ...

    def took(self, word: str) -> int:
        return sum(word.encode() in each for each in self.taken)


class Scene:
    def __init__(self, stage: Stage) -> None:
        self.stage, self.key = stage, stage.key("q")
        stage.add(self.key, f"t.{self.key}", RedeliveryPolicy(max_attempts=1, delay=0))
        messages = [Message(body=Typed("string", f"replayed {n}"), message_id=Typed("string",
            f"{self.key}-{n}"))
                    for n in range(COUNT)]  # fmt: skip
        stage.publish(f"t.{self.key}", *messages)
        stage.consume(self.key, COUNT, Settle.REJECT)
        stage.follow(lambda: DeadLetter.objects.filter(setting_key=self.key).count() == COUNT)
        pool, server = Pool.objects.create(name="demo"), Server.objects.create(name="srv-1")
        pool.servers.add(server)
        self.setting: LaunchSetting = make_setting(pool, self.key, address=f"t.{self.key}", concurrency=4)
        make_alive(server, now=timezone.now())
        assert enable_setting(self.setting, None, timezone.now()) is not None
        self.anna = User.objects.create_superuser("anna", password=None)

    def until(self, what: str, true: Any) -> None:
        end = time.monotonic() + 60
        while not true():
            assert time.monotonic() < end, what
            time.sleep(0.05)

    def consumers(self) -> int:
        return int(self.stage.management.attribute(f"queue.{self.key}", "ConsumerCount"))

    @contextmanager
    def load(self) -> Iterator[None]:
        """Somebody publishes all the time."""
        over = threading.Event()

        def publish() -> None:
            publisher = AmqpPublisher(self.stage.account("publisher", "amqp"))
            while not over.wait(0.01):
                publisher.publish([Outgoing(f"t.{self.key}", Message(body=Typed("string", "live")))] * 10)
            publisher.close()

        thread = threading.Thread(target=publish)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def replay(self) -> ReplayJob:
        self.setting.refresh_from_db()
        wish = ReplayRequest(self.setting, Action.GIVE_BACK, Scope.ALL, acknowledged=CODES)
        return begin_replay(wish, by=self.anna, now=timezone.now())

    def worker(self, job: ReplayJob) -> ReplayJob:
        """What beat does: it sends a worker whenever nobody holds the job."""
        ReplayJob.objects.filter(pk=job.pk).update(lease_until=None)
        run_replay(str(job.pk))
        job.refresh_from_db()
        return job


@pytest.fixture
def scene(stage: Stage, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Scene:
    settings.STATIC_ROOT.mkdir(parents=True, exist_ok=True)
    plain = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
    settings.STORAGES = {**settings.STORAGES, "staticfiles": plain}
    monkeypatch.setattr(tasks, "letter_queues", lambda: stage.queues)
    for name in (
        "dlq.replay.requests",
        "agents.provisioning.queue_counts",
        "agents.provisioning.queue_counts",
    ):
        monkeypatch.setattr(f"{name}.management", lambda: stage.management)
    monkeypatch.setattr("console.task_queue._send", lambda *_: None)
    return Scene(stage)


def test_nothing_that_is_replayed_right_after_disabling_is_handled_by_the_old_run(scene: Scene) -> None:
    old = OldRun(scene.stage, scene.key)
    old.consumer.grant(10)
    with scene.load():
        scene.until("it handles the load", lambda: len(old.taken) > 50)
        assert disable_setting(scene.setting, None, said("to be mended"), timezone.now())
        job = scene.replay()
        stopped = threading.Timer(LEARNS_LATER, old.consumer.stop)
        stopped.start()
        end = time.monotonic() + 60
        while job.finished_at is None and time.monotonic() < end:
            job = scene.worker(job)
            time.sleep(0.1)
        stopped.join()
    assert old.took("live") and old.took("replayed") == 0
    assert (job.state, job.counts["given_back"]) == (JobState.DONE, COUNT)
    waiting = scene.stage.queues.browser.browse(f"t.{scene.key}", scene.key, limit=100_000)
    assert sum(b"replayed" in each.encoded for each in waiting) == COUNT


def test_consumers_that_stay_pause_the_job_and_a_person_lets_it_go_on(scene: Scene, client: Any) -> None:
    old = OldRun(scene.stage, scene.key)
    scene.until("it consumes", lambda: scene.consumers() == 1)
    disable_setting(scene.setting, None, said("to be mended"), timezone.now())
    ask = {"setting": scene.key, "all": True}
    headers = {"HTTP_AUTHORIZATION": bearer_of(scene.anna)["Authorization"]}
    json: Any = {"content_type": "application/json"} | headers
    warned = {
        each["code"]: each for each in client.post("/api/v1/preflight/", ask, **json).json()["warnings"]
    }
    assert warned["stopping"]["n"] == 1 and "1 consumer open" in warned["stopping"]["text"]

    client.force_login(scene.anna)
    assert "stopping, 1 consumer open" in client.get(f"/settings/{scene.key}/").content.decode()
    assert (
        "Stopping, 1 consumer open"
        in client.get(f"/dead-letters/{scene.key}/give-back/?all=1").content.decode()
    )

    job = scene.worker(scene.replay())
    assert (job.state, job.wait_reason, job.slices.filter(state="moved").count()) == (
        "running",
        "stopping",
        0,
    )
    since = job.stopping_since
    assert since is not None and scene.worker(job).stopping_since == since, (
        "another worker waits for the rest"
    )
    ReplayJob.objects.filter(pk=job.pk).update(stopping_since=timezone.now() - timedelta(seconds=61))
    job = scene.worker(job)
    assert (job.state, job.lease_until, job.counts.get("given_back", 0)) == ("paused", None, 0)
    assert job.pause_reason == {"code": "consumers_open", "consumers": 1, "servers": ["srv-1"]}
    assert AuditEntry.objects.get(action="replay.pause").detail["why"] == job.pause_reason
    shown = client.get(f"/api/v1/replays/{job.pk}/", **headers).json()
    assert (shown["state"], shown["pause_reason"]) == ("paused", job.pause_reason)
    page = client.get(f"/replays/{job.pk}/").content.decode()
    assert "Stopping, 1 consumer open" in page and "srv-1" in page and "Resume despite open consumers" in page

    client.post(f"/api/v1/replays/{job.pk}/resume/", {}, **json)
    assert scene.worker(job).wait_reason == "stopping", "resumed without a word it waits again"
    client.post(f"/api/v1/replays/{job.pk}/pause/", {}, **json)
    client.post(f"/api/v1/replays/{job.pk}/resume/", {"acknowledge": ["stopping"]}, **json)
    for _ in range(3):
        job = scene.worker(job)
    assert (job.state, job.counts["given_back"]) == ("done", COUNT)
    resumed = AuditEntry.objects.filter(action="replay.resume").order_by("pk")
    assert [entry.detail.get("acknowledged") for entry in resumed] == [None, ["stopping"]]
    old.consumer.stop()


def test_a_setting_that_is_enabled_again_meanwhile_is_waited_for_no_longer(scene: Scene) -> None:
    old = OldRun(scene.stage, scene.key)
    scene.until("it consumes", lambda: scene.consumers() == 1)
    disable_setting(scene.setting, None, said("by mistake"), timezone.now())
    job = scene.worker(scene.replay())
    assert job.wait_reason == "stopping"
    enable_setting(LaunchSetting.objects.get(pk=scene.setting.pk), None, timezone.now())
    for _ in range(3):
        job = scene.worker(job)
    assert (job.state, job.counts["given_back"]) == ("done", COUNT)
    old.consumer.stop()
