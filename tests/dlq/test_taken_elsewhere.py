"""A stranger takes letters out of a dead-letter queue while a job moves them, on the real broker: what we
moved is said to be replayed, what the stranger took is not, and nothing waits for ever."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.utils import timezone

from broker.amqp.codec import decode
from broker.amqp.consumer import AmqpConsumer
from broker.port import Message, Settle
from contract.typed import Typed
from dlq.dead_letters.rules.parser import origin_of
from dlq.models import DeadLetter, ReplayJob
from dlq.replay.requests import Options
from failures.intake.batch import accept_batch
from tests.dlq.jobs import begun, carry_out, replays, taken
from tests.dlq.stage import DLA, Seen, Stage
from tests.web import reports

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def no_celery(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("console.jobs.engine.send", lambda *_, **__: True)


class Scene:
    """A setting with dead letters that the index knows; `names` are their message ids."""

    def __init__(self, stage: Stage, count: int) -> None:
        self.stage = stage
        self.key = stage.key("n")
        self.setting = reports.setting(self.key)
        self.person = reports.person(f"operator-{self.key}")
        self.run = reports.run(self.setting, reports.server())
        self.names = [f"{self.key}-{n:04}" for n in range(count)]
        self.stage.publish(
            f"t.{self.key}",
            *(Message(body=Typed("string", name), message_id=Typed("string", name)) for name in self.names),
        )
        self.stage.consume(self.key, count, Settle.REJECT)
        rows = DeadLetter.objects.filter(setting_key=self.key)
        self.stage.follow(lambda: rows.count() == count)

    def ask(self, **options: Any) -> ReplayJob:
        how = Options(**options)
        return begun(self.setting, action="give_back", scope="all", by=self.person, options=how)

    def work(self, job: ReplayJob) -> ReplayJob:
        """A worker, as often as beat would send one, until the job is over."""
        while job.finished_at is None:
            ReplayJob.objects.filter(pk=job.pk).update(lease_until=None)
            carry_out(replays(self.stage.queues), job)
            job.refresh_from_db()
        return job

    def handle(self) -> list[str]:
        """A KMA takes all that is in the subscription, handles it well and reports so; the names."""
        found = self.stage.consume(self.key, self.stage.count(self.key), Settle.ACCEPT)
        names = []
        for encoded in found:
            message = decode(encoded)
            assert message.message_id is not None
            origin, name = origin_of(message), str(message.message_id.value)
            about = reports.message(
                name, replayed=True, dead_letter_queue=origin.queue, dead_letter_id=origin.message_id
            )
            content = reports.replay_outcome(
                reports.run_of(self.run), about, "handled", occurred_at=timezone.now()
            )
            accept_batch(self.run.server, reports.Spool().batch(content), timezone.now())
            names.append(name)
        return sorted(names)


class Stranger:
    """Another consumer of the dead-letter queue; `taken` are the names of what it has accepted."""

    def __init__(self, scene: Scene, most: int, window: int = 3) -> None:
        self._scene, self._most, self._window = scene, most, window
        self.taken: list[str] = []
        self.reached = threading.Event()

    def take(self) -> None:
        seen = Seen()
        account = self._scene.stage.account("ops", "amqp")
        consumer = AmqpConsumer(account, DLA, f"DLQ.{self._scene.key}", seen, self._window)
        consumer.start()
        try:
            while len(self.taken) < self._most:
                delivery = seen.deliveries.get(timeout=20)
                message = decode(delivery.encoded)
                assert message.message_id is not None
                self.taken.append(str(message.message_id.value))
                consumer.settle([(delivery.tag, Settle.ACCEPT)])
                self.reached.set()
                threading.Event().wait(0.01)
        finally:
            consumer.stop()


@contextmanager
def at_work(stranger: Stranger) -> Iterator[None]:
    thread = threading.Thread(target=stranger.take)
    thread.start()
    try:
        assert stranger.reached.wait(20)
        yield
    finally:
        thread.join(60)
    assert not thread.is_alive()


def test_what_a_stranger_took_is_not_told_as_replayed_and_nothing_waits(stage: Stage) -> None:
    scene = Scene(stage, 240)
    job, stranger = scene.ask(per_second=25), Stranger(scene, 72)
    worker = replays(stage.queues)
    worker.step(taken(worker, job))  # some seconds, in which a part of it moves
    with at_work(stranger):
        scene.work(job)
    went = scene.handle()
    assert sorted(went + stranger.taken) == scene.names, "each is in one place"
    job.refresh_from_db()
    states = dict(job.items.values_list("letter__message_id", "state"))
    replayed = sorted(name for name, state in states.items() if state == "given_back")
    assert [name for name in stranger.taken if name in replayed] == [], "told as replayed, and was not"
    assert replayed == went
    assert job.items.filter(state="given_back", outcome="handled").count() == len(went)
    assert {states[name] for name in stranger.taken} == {"taken_elsewhere"}
