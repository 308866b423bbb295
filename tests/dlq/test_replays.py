"""Giving back on the real broker: to the setting's own queue only, each letter once, whatever dies in
between."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from agents.models import Run
from broker.port import BrokerTimeout, BrokerUnavailable, Message, Settle
from console.audit.models import AuditEntry
from console.jobs.engine import claim
from console.operations.refusals import Refused
from console.reasons import NO_REASON, said
from contract.typed import Typed
from dlq import tasks
from dlq.index.broker import LetterQueues
from dlq.index.walk import WalkIncomplete
from dlq.models import DeadLetter, JobState, LetterState, Outcome, ReplayItem, ReplayJob, Scope, SliceState
from dlq.replay.rules import slices
from failures.intake.batch import accept_batch
from ma_site.tasks import start_jobs
from tests.dlq.jobs import begun, carry_out, replays, run_replay, taken
from tests.dlq.stage import Stage
from tests.web import reports

pytestmark = pytest.mark.django_db


class Scene:
    """A setting with dead letters that the index knows."""

    def __init__(self, stage: Stage, count: int) -> None:
        self.stage = stage
        self.key = stage.key("r")
        self.setting = reports.setting(self.key)
        self.person = reports.person(f"operator-{self.key}")
        self.letters = self.die(count)

    def die(self, count: int, prefix: str = "m") -> list[DeadLetter]:
        messages = [
            Message(
                body=Typed("string", f"{prefix} {n}"), message_id=Typed("string", f"{self.key}-{prefix}-{n}")
            )
            for n in range(count)
        ]
        self.stage.publish(f"t.{self.key}", *messages)
        return self.fail(count)

    def fail(self, count: int) -> list[DeadLetter]:
        """What waits in the subscription dies; the new rows."""
        known = set(self.rows().values_list("pk", flat=True))
        self.stage.consume(self.key, count, Settle.REJECT)
        self.stage.follow(lambda: self.rows().count() == len(known) + count)
        return list(self.rows().exclude(pk__in=known).order_by("pk"))

    def rows(self) -> Any:
        return DeadLetter.objects.filter(setting_key=self.key)

    def all(self) -> ReplayJob:
        return self._job(Scope.ALL, reason="mended")

    def some(self, *letters: DeadLetter) -> ReplayJob:
        scope = Scope.ONE if len(letters) == 1 else Scope.SELECTION
        return self._job(scope, letters=[row.pk for row in letters])

    def _job(self, scope: Scope, **how: Any) -> ReplayJob:
        return begun(self.setting, action="give_back", scope=scope, by=self.person, **how)

    def run(self, job: ReplayJob, queues: LetterQueues | None = None) -> ReplayJob:
        carry_out(replays(queues or self.stage.queues), job)
        job.refresh_from_db()
        return job

    def counts(self) -> tuple[int, int]:
        """(in the subscription, in the dead-letter queue), says the broker."""
        return self.stage.count(self.key), self.stage.count(f"DLQ.{self.key}")


@pytest.fixture(autouse=True)
def no_celery(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What would have been sent to a worker."""
    sent: list[str] = []
    monkeypatch.setattr("console.jobs.engine.send", lambda task, kind, job, **_: sent.append(job))
    return sent


def test_all_go_to_the_subscription_of_the_setting_only(stage: Stage) -> None:
    scene = Scene(stage, 5)
    second = stage.key("other")
    stage.add(f"{second}-x", f"t.{scene.key}")  # a second subscription of the same address
    job = scene.run(scene.all())
    assert (job.state, job.total, str(job.problem)) == (JobState.DONE, 5, "")
    assert scene.counts() == (5, 0)
    assert stage.count(f"{second}-x") == 0
    assert set(scene.rows().values_list("state", flat=True)) == {LetterState.GIVEN_BACK}
    assert sorted(stage.ids(scene.key, f"t.{scene.key}")) == sorted(row.message_id for row in scene.letters)


def test_more_letters_than_one_slice_holds(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "RANGE_SLICE", 500)
    scene = Scene(stage, 530)
    job = scene.run(scene.all())
    assert scene.counts() == (530, 0)
    assert list(job.slices.order_by("number").values_list("size", "moved", "state")) == [
        (500, 500, SliceState.CHECKED), (30, 30, SliceState.CHECKED),
    ]  # fmt: skip


def test_every_second_letter_goes_by_its_id_and_the_others_stay(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slices, "RANGE_SLICE", 50)
    monkeypatch.setattr(slices, "NAMED_SLICE", 200)
    scene = Scene(stage, 430)
    job = scene.run(scene.some(*scene.letters[::2]))
    assert scene.counts() == (215, 215)
    sizes = job.slices.order_by("number").values_list("size", "moved", "left", "by_range", "state")
    assert list(sizes) == [
        (200, 200, 200, False, SliceState.CHECKED),
        (15, 15, 15, False, SliceState.CHECKED),
    ]
    assert {row.state for row in scene.rows().order_by("orig_message_id")[::2]} == {LetterState.GIVEN_BACK}


def test_chosen_letters_go_and_the_others_stay(stage: Stage) -> None:
    scene = Scene(stage, 4)
    job = scene.run(scene.some(*scene.letters[1:3]))
    assert (job.scope, job.total, scene.counts()) == ("selection", 2, (2, 2))
    states = [row.state for row in scene.rows().order_by("pk")]
    assert states == ["dead", "given_back", "given_back", "dead"]
    assert sorted(stage.ids(scene.key, f"t.{scene.key}")) == sorted(
        row.message_id for row in scene.letters[1:3]
    )


def test_what_dies_after_the_question_is_not_in_the_scope(stage: Stage) -> None:
    scene = Scene(stage, 2)
    job = scene.all()
    (later,) = scene.die(1, "later")
    scene.run(job)
    assert scene.counts() == (2, 1)
    later.refresh_from_db()
    assert later.state == LetterState.DEAD


def test_a_letter_that_is_not_there_any_more_is_said_to_be_gone(stage: Stage) -> None:
    scene = Scene(stage, 3)
    stage.management.call(
        f"queue.DLQ.{scene.key}",
        "removeMessages",
        f"_AMQ_ORIG_MESSAGE_ID = {scene.letters[0].orig_message_id}",
    )
    job = scene.run(scene.all())
    assert (job.state, scene.counts()) == (JobState.DONE, (2, 0))
    assert sorted(job.items.values_list("state", flat=True)) == ["given_back", "given_back", "not_found"]
    scene.letters[0].refresh_from_db()
    assert scene.letters[0].state == LetterState.GONE


def test_a_letter_is_given_back_once_at_a_time(stage: Stage) -> None:
    scene = Scene(stage, 2)
    first = scene.some(scene.letters[0])
    with pytest.raises(Refused) as refused:
        scene.some(scene.letters[0])
    assert (refused.value.code, refused.value.more) == ("outstanding", {"letters": [scene.letters[0].pk]})
    every = scene.all()
    with pytest.raises(Refused) as refused:
        scene.all()
    assert refused.value.code == "already_running"
    scene.run(every)
    scene.run(first)
    assert scene.counts() == (2, 0)
    assert [job.items.filter(state="given_back").count() for job in (first, every)] == [1, 1]


def test_a_missing_subscription_fails_the_job_and_leaves_the_letters(stage: Stage) -> None:
    scene = Scene(stage, 3)
    stage.management.call("broker", "destroyQueue", scene.key)
    job = scene.run(scene.all())
    assert job.state == JobState.FAILED and scene.key in str(job.problem)
    assert stage.count(f"DLQ.{scene.key}") == 3
    assert set(job.items.values_list("state", flat=True)) == {"failed_to_move"}
    assert set(scene.rows().values_list("state", flat=True)) == {"dead"}
    stage.add(scene.key, f"t.{scene.key}")
    assert scene.run(scene.all()).state == JobState.DONE
    assert scene.counts() == (3, 0)


@pytest.mark.parametrize("scope", ["all", "some"])
def test_a_missing_dead_letter_queue_fails_the_job(stage: Stage, scope: str) -> None:
    scene = Scene(stage, 2)
    stage.management.call(f"queue.DLQ.{scene.key}", "removeAllMessages")
    stage.management.call("broker", "destroyQueue", f"DLQ.{scene.key}")
    job = scene.run(scene.all() if scope == "all" else scene.some(*scene.letters))
    assert job.state == JobState.FAILED and f"DLQ.{scene.key}" in str(job.problem)


def test_an_action_is_in_the_audit(stage: Stage) -> None:
    scene = Scene(stage, 1)
    job = scene.run(scene.all())
    entries = list(AuditEntry.objects.filter(target=f"replay:{job.pk}").order_by("pk"))
    assert [(entry.action, entry.by) for entry in entries] == [
        ("dead_letters.replay", scene.person), ("replay.done", scene.person),
    ]  # fmt: skip
    assert (entries[0].reason, entries[0].counts) == ("mended", {"letters": 1})


# -- outcomes ------------------------------------------------------------------------------------------------


def report(scene: Scene, run: Run, letter: DeadLetter, result: str) -> None:
    about = reports.message(
        letter.message_key,
        replayed=True,
        dead_letter_queue=letter.queue,
        dead_letter_id=letter.orig_message_id + 1,
    )
    content = reports.replay_outcome(reports.run_of(run), about, result, occurred_at=timezone.now())
    accept_batch(run.server, reports.Spool().batch(content), timezone.now())


def outcomes(job: ReplayJob) -> list[str]:
    return list(job.items.order_by("letter_id").values_list("outcome", flat=True))


def test_outcomes_are_what_the_kmas_say_and_what_dies_again(stage: Stage) -> None:
    scene = Scene(stage, 3)
    run = reports.run(scene.setting, reports.server())
    job = scene.run(scene.all())
    handled, failed, dead = scene.letters
    report(scene, run, handled, "handled")
    report(scene, run, failed, "failed")
    report(scene, run, dead, "failed")
    assert outcomes(job) == ["handled", "failed_again", "failed_again"]
    waiting = stage.consume(scene.key, 2, Settle.ACCEPT)
    assert len(waiting) == 2
    (again,) = scene.fail(1)
    died = [row for row in scene.letters if row.message_key == again.message_key]
    item = ReplayItem.objects.get(job=job, letter=died[0])
    assert (item.outcome, item.died_as, again.chapter) == (Outcome.DEAD_AGAIN, again, 2)
    second = scene.run(scene.some(again))
    assert second.items.get().state == "given_back"


def test_a_letter_that_dies_again_before_its_move_is_told_is_joined_all_the_same(
    stage: Stage,
) -> None:
    scene = Scene(stage, 1)
    job = scene.all()
    broken: Any = Broken(stage.queues, "after")
    worker = replays(broken)
    mine = taken(worker, job)
    with pytest.raises(BrokerUnavailable):
        worker.step(mine)
    (again,) = scene.fail(1)
    mine.release()
    scene.run(job)
    item = job.items.get()
    assert (item.state, item.outcome, item.died_as) == ("given_back", Outcome.DEAD_AGAIN, again)


# -- what dies in between ------------------------------------------------------------------------------------


class Broken:
    """Queues where each move breaks: before the broker hears of it, after it has done it, or its answer is
    lost."""

    def __init__(self, queues: LetterQueues, when: str) -> None:
        self.queues, self.when = queues, when

    def __getattr__(self, name: str) -> Any:
        return getattr(self.queues, name)

    def move_between(self, *arguments: Any) -> int:
        if self.when == "before":
            raise BrokerUnavailable("the connection is lost")
        self.queues.move_between(*arguments)
        raise (
            BrokerTimeout("no answer")
            if self.when == "unheard"
            else BrokerUnavailable("the connection is lost")
        )


@pytest.mark.parametrize(("when", "left"), [("before", (0, 3)), ("after", (3, 0)), ("unheard", (3, 0))])
def test_a_broken_move_is_told_by_the_next_try(stage: Stage, when: str, left: tuple[int, int]) -> None:
    scene = Scene(stage, 3)
    job = scene.all()
    broken: Any = Broken(stage.queues, when)
    worker = replays(broken)
    mine = taken(worker, job)
    if when == "unheard":
        worker.step(mine)
    else:
        with pytest.raises(BrokerUnavailable):
            worker.step(mine)
    assert (scene.counts(), job.items.filter(state="planned").count()) == (left, 3)
    mine.release()
    scene.run(job)
    assert (job.state, scene.counts()) == (JobState.DONE, (3, 0))
    assert list(job.items.values_list("state", flat=True)) == ["given_back"] * 3


def test_a_worker_that_is_silent_too_long_is_followed_by_another(stage: Stage) -> None:
    scene = Scene(stage, 3)
    job = scene.all()
    now = timezone.now()
    worker = replays(stage.queues)
    silent = taken(worker, job)
    assert claim(worker, job.pk, timezone.now()) is None
    ReplayJob.objects.filter(pk=job.pk).update(lease_until=now - timedelta(seconds=1))
    scene.run(job)
    assert (job.state, scene.counts()) == (JobState.DONE, (3, 0))
    assert not silent.renew(now) and not silent.end(state=JobState.FAILED)
    silent.release(problem=said("it was away"))
    job.refresh_from_db()
    assert (job.state, job.problem) == (JobState.DONE, NO_REASON), "who comes back changes nothing"


def test_two_jobs_never_move_letters_of_one_queue_at_once(stage: Stage) -> None:
    scene = Scene(stage, 2)
    first, second = scene.some(scene.letters[0]), scene.some(scene.letters[1])
    worker = replays(stage.queues)
    mine = taken(worker, first)
    assert claim(worker, second.pk, timezone.now()) is None
    second.refresh_from_db()
    assert second.wait_reason == "another_job"
    mine.release()
    assert scene.run(second).state == JobState.DONE
    assert scene.run(first).state == JobState.DONE
    assert scene.counts() == (2, 0)


def test_a_walk_that_did_not_see_everything_is_no_walk(stage: Stage) -> None:
    scene = Scene(stage, 3)
    queues = LetterQueues(stage.management, Blind(stage.queues.browser), "MA.DLA")
    with pytest.raises(WalkIncomplete):
        list(queues.numbers(f"DLQ.{scene.key}"))


class Blind:
    """A browser that misses the last message."""

    def __init__(self, browser: Any) -> None:
        self.browser = browser

    def browse(self, address: str, queue: str, *, limit: int) -> Iterator[Any]:
        yield from self.browser.browse(address, queue, limit=limit)

    def walk(self, address: str, queue: str) -> Iterator[list[bytes]]:
        for piece in self.browser.walk(address, queue):
            yield piece[:-1]

    def close(self) -> None: ...


def test_beat_starts_jobs_whose_task_was_lost(stage: Stage, no_celery: list[str]) -> None:
    scene = Scene(stage, 2)
    first, second = scene.some(scene.letters[0]), scene.some(scene.letters[1])
    taken(replays(stage.queues), second)
    no_celery.clear()
    start_jobs()
    assert no_celery == [str(first.pk)]
    ReplayJob.objects.filter(pk=second.pk).update(lease_until=timezone.now())
    no_celery.clear()
    start_jobs()
    assert no_celery == [str(first.pk)], "one of a queue at a time, the older one first"
    run_replay(str(first.pk))
    no_celery.clear()
    start_jobs()
    assert no_celery == [str(second.pk)]


def test_a_task_waits_while_the_broker_is_away_and_goes_on_later(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = Scene(stage, 2)
    job = scene.all()
    broken: Any = Broken(stage.queues, "before")
    monkeypatch.setattr(tasks, "letter_queues", lambda: broken)
    run_replay(str(job.pk))
    job.refresh_from_db()
    assert (job.state, scene.counts(), str(job.problem)) == (
        JobState.RUNNING,
        (0, 2),
        "the connection is lost",
    )
    monkeypatch.setattr(tasks, "letter_queues", lambda: stage.queues)
    run_replay(str(job.pk))
    assert scene.counts() == (0, 2), "its pause is not over"
    ReplayJob.objects.filter(pk=job.pk).update(lease_until=timezone.now())
    run_replay(str(job.pk))
    job.refresh_from_db()
    assert (job.state, scene.counts(), str(job.problem)) == (JobState.DONE, (2, 0), "")
