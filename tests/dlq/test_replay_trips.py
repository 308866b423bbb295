"""A ladder whose letters trip the breaker of their setting: it stops by itself, the rest stays and can go
later."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from agents.heartbeat.heartbeats import accept_heartbeat
from agents.models import BreakerTrip, LaunchSetting, Pool, Run, Server
from agents.settings.enable import enable_setting
from broker.port import Message, Settle
from console.audit.models import AuditEntry
from console.operations.refusals import Refused
from contract import breaker
from contract.messages import RunReport
from contract.outcomes import Outcome
from contract.records import BreakerCounts, RunState
from contract.redelivery import RedeliveryPolicy
from contract.typed import Typed
from dlq import tasks
from dlq.models import Action, DeadLetter, JobState, ReplayJob, Scope
from dlq.reasons import TRIPPED
from dlq.replay.creation import begin_replay
from dlq.replay.preflight.rules import CODES
from dlq.replay.requests import Options, ReplayRequest
from dlq.replay.rules import ladder
from failures.intake.batch import accept_batch
from kma.delivery.message_identity import identify
from tests.dlq.jobs import run_replay
from tests.dlq.stage import Stage
from tests.web import reports
from tests.web.rows import heartbeat, make_alive, make_setting

pytestmark = pytest.mark.django_db(transaction=True)
COUNT, FIRST, SECOND = 12, 1, 5
M = 9
EXCEPTION = "builtins.KeyError"


class Scene:
    """A setting that is at work on one server, with `count` dead letters of before."""

    def __init__(self, stage: Stage, count: int) -> None:
        self.stage, self.key = stage, stage.key("l")
        stage.add(self.key, f"t.{self.key}", RedeliveryPolicy(max_attempts=5, delay=0))
        names = [f"{self.key}-{number:02}" for number in range(count)]
        pool, server = Pool.objects.create(name="demo"), Server.objects.create(name="srv-1")
        pool.servers.add(server)
        self.setting: LaunchSetting = make_setting(pool, self.key, address=f"t.{self.key}", breaker_m=M)
        messages = [Message(body=Typed("string", name), message_id=Typed("string", name)) for name in names]
        stage.publish(f"t.{self.key}", *messages)
        stage.consume(self.key, count, Settle.REJECT)
        stage.follow(lambda: DeadLetter.objects.filter(setting_key=self.key).count() == count)
        make_alive(server, now=timezone.now())
        self.run = self.enabled()
        self.spool = reports.Spool(server.name)

    def enabled(self) -> Run:
        activation = enable_setting(self.setting, None, timezone.now())
        assert activation is not None
        run: Run = activation.runs.select_related("server", "activation__setting").get()
        return run

    def live(self, count: int) -> None:
        """Messages that nobody gave back."""
        self.stage.publish(
            f"t.{self.key}", *[Message(body=Typed("string", f"live {n}")) for n in range(count)]
        )

    def reported(self, in_a_row: int, after: timedelta = timedelta(seconds=2)) -> None:
        """A heartbeat that left the server after everything that it has reported so far."""
        counts = BreakerCounts(EXCEPTION, in_a_row, in_a_row)
        report = RunReport(
            self.run.activation_id, self.run.epoch, self.key, RunState.RUNNING, counts=counts, connected=True
        )
        now = timezone.now() + after
        server = Server.objects.get(pk=self.run.server_id)
        accept_heartbeat(server, heartbeat(server.name, report, sent_at=now), now)

    def give_back(self, who: str, options: Options, acknowledged: tuple[str, ...] = CODES) -> ReplayJob:
        by, _ = User.objects.get_or_create(username=who, defaults={"is_superuser": True})
        self.setting.refresh_from_db()
        wish = ReplayRequest(
            self.setting, Action.GIVE_BACK, Scope.ALL, options=options, acknowledged=acknowledged
        )
        return begin_replay(wish, by=by, now=timezone.now())

    def turn(self, job: ReplayJob) -> ReplayJob:
        """Of a worker, when what is waited for may be there."""
        ReplayJob.objects.filter(pk=job.pk).update(lease_until=None)
        run_replay(str(job.pk))
        job.refresh_from_db()
        return job

    def handled(self, count: int) -> None:
        self._report(
            *(self._outcome(each, "handled") for each in self.stage.consume(self.key, count, Settle.ACCEPT))
        )

    def failed_until_it_gives_up(self, taken: int) -> None:
        """As a KMA that took so many: it reports each failure, and gives up as its own breaker says; all go
        back to the broker."""
        counts, contents = breaker.Counts(), []
        for each in self.stage.consume(self.key, taken, Settle.FAIL):
            about = identify(each).record(queue=self.key, destination=f"t.{self.key}", count=0, attempt=1)
            contents += [
                reports.protocol(
                    reports.run_of(self.run), about, exception_type=EXCEPTION, occurred_at=timezone.now()
                ),
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
                reports.run_of(self.run),
                counts=said,
                reason=reason.value,
                max_failures=M,
                evidence=(),
                occurred_at=timezone.now(),
            ),
        )

    def _outcome(self, encoded: bytes, result: str) -> Any:
        about = identify(encoded).record(queue=self.key, destination=f"t.{self.key}", count=0, attempt=1)
        return reports.replay_outcome(reports.run_of(self.run), about, result, occurred_at=timezone.now())

    def _report(self, *contents: Any) -> None:
        accept_batch(self.run.server, self.spool.batch(*contents), timezone.now())

    def lying(self) -> tuple[int, int]:
        """What waits in the subscription, and what is dead."""
        return self.stage.count(self.key), self.stage.count(f"DLQ.{self.key}")


@pytest.fixture
def here(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "letter_queues", lambda: stage.queues)
    for name in ("dlq.replay.requests", "agents.provisioning.queue_counts"):
        monkeypatch.setattr(f"{name}.management", lambda: stage.management)
    monkeypatch.setattr("console.task_queue._send", lambda *_: None)


@pytest.fixture
def scene(stage: Stage, here: None) -> Scene:
    return Scene(stage, COUNT)


def test_a_trip_stops_the_ladder_and_lets_go_of_the_rest(scene: Scene) -> None:
    # Of its own percentage it would go on: only the trip can stop it.
    job = scene.turn(scene.give_back("anna", Options(ladder=True, ladder_percent=100)))
    assert scene.lying() == (FIRST, COUNT - FIRST)
    scene.handled(FIRST)
    scene.turn(job)
    scene.reported(in_a_row=0)
    job = scene.turn(job)
    assert (scene.lying(), job.state) == ((SECOND, COUNT - FIRST - SECOND), JobState.RUNNING)

    scene.failed_until_it_gives_up(SECOND)
    assert BreakerTrip.objects.get().setting == scene.setting
    assert not LaunchSetting.objects.get(pk=scene.setting.pk).enabled
    for _ in range(3):
        job = scene.turn(job)

    left = COUNT - FIRST - SECOND
    assert (job.state, job.problem) == (
        JobState.STOPPED,
        TRIPPED(),
    ) and job.finished_at is not None
    assert AuditEntry.objects.get(action="replay.stopped").detail["why"] == "tripped"
    assert job.counts["given_back"] == FIRST + SECOND and job.counts["cancelled"] == left
    assert (job.counts["handled"], job.counts["failed_again"], job.counts["planned"]) == (FIRST, 3, 0)
    assert scene.lying() == (SECOND, left)
    dead = DeadLetter.objects.filter(setting_key=scene.key, state="dead")
    assert sorted(dead.values_list("message_key", flat=True)) == scene.stage.ids(f"DLQ.{scene.key}", "MA.DLA")

    with pytest.raises(Refused) as refused:
        scene.give_back("bert", Options(), acknowledged=())
    assert refused.value.code == "unacknowledged" and "tripped" in refused.value.more["warnings"]
    other = scene.turn(scene.give_back("bert", Options()))
    assert (other.state, other.counts["given_back"]) == (JobState.DONE, left)
    assert scene.lying() == (COUNT - FIRST, 0)
    waiting = scene.stage.ids(scene.key, f"t.{scene.key}")
    assert len(set(waiting)) == COUNT - FIRST, "each once, but for the one that was handled"


def test_after_a_trip_that_was_mended_a_ladder_gives_all_back_in_one_go(stage: Stage, here: None) -> None:
    count = 200
    scene = Scene(stage, count)
    scene.live(3)
    scene.failed_until_it_gives_up(3)
    assert BreakerTrip.objects.filter(setting=scene.setting).exists()
    # The run that tripped is not closed yet: its last records are still in the spool of its server.
    scene.setting.refresh_from_db()
    scene.run = scene.enabled()
    # The first two messages came before the mend was everywhere; the next ones are handled.
    scene.reported(in_a_row=2)
    scene.handled(3)

    job, states = scene.give_back("anna", Options(ladder=True)), []
    for _ in range(30):
        job = scene.turn(job)
        states.append((job.state, job.problem, job.wait_reason))
        if waiting := stage.count(scene.key):
            scene.handled(waiting)
        elif job.finished_at is not None:
            break
        else:
            scene.reported(in_a_row=0)

    job.refresh_from_db()
    assert (job.state, job.counts.get("handled")) == (JobState.DONE, count), states[-1]
    assert scene.lying() == (0, 0)


def test_a_setting_that_fails_in_a_row_after_the_outcomes_stops_its_ladder(scene: Scene) -> None:
    scene.reported(in_a_row=5, after=timedelta())
    job = scene.turn(scene.give_back("anna", Options(ladder=True)))
    scene.handled(FIRST)
    job = scene.turn(job)
    assert (job.wait_reason, scene.lying()) == ("heartbeat", (0, COUNT - FIRST)), "nothing was reported since"
    scene.reported(in_a_row=7)
    for _ in range(2):
        job = scene.turn(job)
    assert (job.state, AuditEntry.objects.get(action="replay.stopped").detail["why"]) == (
        JobState.STOPPED,
        "breaker",
    )
    assert scene.lying() == (0, COUNT - FIRST)


def test_a_server_that_reports_nothing_more_holds_a_ladder_for_seconds_only(scene: Scene) -> None:
    scene.reported(in_a_row=5, after=timedelta())
    job = scene.turn(scene.give_back("anna", Options(ladder=True)))
    scene.handled(FIRST)
    assert scene.turn(job).wait_reason == "heartbeat"
    ReplayJob.objects.filter(pk=job.pk).update(ladder_known_at=timezone.now() - ladder.HEARTBEAT_PATIENCE)
    assert (scene.turn(job).state, scene.lying()) == (JobState.RUNNING, (SECOND, COUNT - FIRST - SECOND))
