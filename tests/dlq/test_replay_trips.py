"""A ladder whose letters trip the breaker of their setting: it stops by itself, the rest stays and can go later."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from agents.models import BreakerTrip, LaunchSetting, Pool, Run, Server
from agents.services.settings import enable_setting
from broker.port import Message, Settle
from contract import breaker
from contract.messages import BreakerCounts
from contract.outcomes import Outcome
from contract.redelivery import RedeliveryPolicy
from contract.typed import Typed
from dlq import tasks
from dlq.asking import Wish, begin
from dlq.models import Action, AuditEntry, DeadLetter, JobState, ReplayJob, Scope
from dlq.preflight import CODES
from dlq.replay.options import Options
from dlq.replay.refusal import ReplayRefused
from failures.intake import accept_batch
from kma.identity import identify
from tests.dlq.stage import Stage
from tests.web import reports
from tests.web.rows import make_alive, make_setting

pytestmark = pytest.mark.django_db(transaction=True)
COUNT, FIRST, SECOND = 12, 1, 5
M = 9
EXCEPTION = "builtins.KeyError"


class Scene:
    """A setting that is at work on one server, with COUNT dead letters of before."""

    def __init__(self, stage: Stage) -> None:
        self.stage, self.key = stage, stage.key("l")
        stage.add(self.key, f"t.{self.key}", RedeliveryPolicy(max_attempts=5, delay=0))
        names = [f"{self.key}-{number:02}" for number in range(COUNT)]
        pool, server = Pool.objects.create(name="demo"), Server.objects.create(name="srv-1")
        pool.servers.add(server)
        self.setting: LaunchSetting = make_setting(pool, self.key, address=f"t.{self.key}", breaker_m=M)
        messages = [Message(body=Typed("string", name), message_id=Typed("string", name)) for name in names]
        stage.publish(f"t.{self.key}", *messages)
        stage.consume(self.key, COUNT, Settle.REJECT)
        stage.follow(lambda: DeadLetter.objects.filter(setting_key=self.key).count() == COUNT)
        make_alive(server, now=timezone.now())
        activation = enable_setting(self.setting, None, timezone.now())
        assert activation is not None
        self.run: Run = activation.runs.select_related("server", "activation__setting").get()
        self.spool = reports.Spool(server.name)

    def give_back(self, who: str, options: Options, acknowledged: tuple[str, ...] = CODES) -> ReplayJob:
        by, _ = User.objects.get_or_create(username=who, defaults={"is_superuser": True})
        self.setting.refresh_from_db()
        wish = Wish(self.setting, Action.GIVE_BACK, Scope.ALL, options=options, acknowledged=acknowledged)
        return begin(wish, by=by, now=timezone.now())

    def turn(self, job: ReplayJob) -> ReplayJob:
        """Of a worker, when what is waited for may be there."""
        ReplayJob.objects.filter(pk=job.pk).update(lease_until=None)
        tasks.run_replay(str(job.pk))
        job.refresh_from_db()
        return job

    def handled(self, count: int) -> None:
        self._report(*(self._outcome(each, "handled") for each in self.stage.consume(self.key, count, Settle.ACCEPT)))

    def failed_until_it_gives_up(self, taken: int) -> None:
        """As a KMA that took so many: it reports each failure, and gives up as its own breaker says; all go
        back to the broker."""
        counts, contents = breaker.Counts(), []
        for each in self.stage.consume(self.key, taken, Settle.FAIL):
            about = identify(each).record(queue=self.key, destination=f"t.{self.key}", count=0, attempt=1)
            contents += [
                reports.protocol(reports.run_of(self.run), about, exception_type=EXCEPTION, occurred_at=timezone.now()),
                self._outcome(each, "failed"),
            ]
            counts = breaker.count(counts, Outcome.RAISED, EXCEPTION)
            if reason := breaker.trips(counts, M):
                break
        assert reason is breaker.TripReason.SAME_TYPE
        said = BreakerCounts(counts.same_type, counts.same, counts.any)
        self._report(
            *contents,
            reports.interruption(
                reports.run_of(self.run), counts=said, reason=reason.value, m=M, evidence=(), occurred_at=timezone.now()
            ),
        )

    def _outcome(self, encoded: bytes, result: str) -> Any:
        about = identify(encoded).record(queue=self.key, destination=f"t.{self.key}", count=0, attempt=1)
        return reports.letter_outcome(reports.run_of(self.run), about, result, occurred_at=timezone.now())

    def _report(self, *contents: Any) -> None:
        accept_batch(self.run.server, self.spool.batch(*contents), timezone.now())

    def lying(self) -> tuple[int, int]:
        """What waits in the subscription, and what is dead."""
        return self.stage.count(self.key), self.stage.count(f"DLQ.{self.key}")


@pytest.fixture
def scene(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Scene:
    monkeypatch.setattr(tasks, "letter_queues", lambda: stage.queues)
    for name in ("dlq.preflight.facts", "agents.pages.figures"):
        monkeypatch.setattr(f"{name}.management", lambda: stage.management)
    monkeypatch.setattr("agents.services.looking._send", lambda *_: None)
    return Scene(stage)


def test_a_trip_stops_the_ladder_and_lets_go_of_the_rest(scene: Scene) -> None:
    # Of its own percentage it would go on: only the trip can stop it.
    job = scene.turn(scene.give_back("anna", Options(ladder=True, ladder_percent=100)))
    assert scene.lying() == (FIRST, COUNT - FIRST)
    scene.handled(FIRST)
    job = scene.turn(job)
    assert (scene.lying(), job.state) == ((SECOND, COUNT - FIRST - SECOND), JobState.RUNNING)

    scene.failed_until_it_gives_up(SECOND)
    assert BreakerTrip.objects.get().setting == scene.setting
    assert not LaunchSetting.objects.get(pk=scene.setting.pk).enabled
    for _ in range(3):
        job = scene.turn(job)

    left = COUNT - FIRST - SECOND
    assert (job.state, job.problem) == (JobState.STOPPED, "the setting tripped") and job.finished_at is not None
    assert AuditEntry.objects.get(action="replay_stopped").detail["why"] == "tripped"
    assert job.counts["given_back"] == FIRST + SECOND and job.counts["cancelled"] == left
    assert (job.counts["handled"], job.counts["failed_again"], job.counts["planned"]) == (FIRST, 3, 0)
    assert scene.lying() == (SECOND, left)
    dead = DeadLetter.objects.filter(setting_key=scene.key, state="dead")
    assert sorted(dead.values_list("message_key", flat=True)) == scene.stage.ids(f"DLQ.{scene.key}", "MA.DLA")

    with pytest.raises(ReplayRefused) as refused:
        scene.give_back("bert", Options(), acknowledged=())
    assert refused.value.code == "unacknowledged" and "tripped" in refused.value.more["warnings"]
    other = scene.turn(scene.give_back("bert", Options()))
    assert (other.state, other.counts["given_back"]) == (JobState.DONE, left)
    assert scene.lying() == (COUNT - FIRST, 0)
    waiting = scene.stage.ids(scene.key, f"t.{scene.key}")
    assert len(set(waiting)) == COUNT - FIRST, "each once, but for the one that was handled"
