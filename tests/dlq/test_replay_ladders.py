"""How fast a job goes, and when it stops by itself: on the memory broker, with what KMAs say of its
letters."""

from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest
from django.utils import timezone

from console.audit.models import AuditEntry
from console.operations.operation import perform
from dlq import tasks
from dlq.models import JobState, ReplayJob
from dlq.replay.operations import ApproveReplay
from dlq.replay.requests import Options
from tests.dlq.jobs import begun, run_replay
from tests.dlq.letter_world import KEYS, World

pytestmark = pytest.mark.django_db
KEY = KEYS[0]


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    world = World()
    monkeypatch.setattr(tasks, "letter_queues", lambda: world.queues)
    monkeypatch.setattr("console.jobs.engine.send", world.asked_to_run)
    monkeypatch.setattr("dlq.index.feed.PAUSE", 0.0)
    return world


def dead(world: World, count: int) -> None:
    for number in range(count):
        world.publish(KEY, f"m{number}", strong=True)
    for _ in range(count):
        world.kma_takes(KEY, "dead")
    world.bring_everything()


def all_of(world: World, options: Options) -> ReplayJob:
    return begun(world.settings[KEY], action="give_back", scope="all", by=world.asker, options=options)


def turn(world: World, job: ReplayJob) -> ReplayJob:
    """One turn of a worker, when nobody waits for a time any more."""
    for each in world.jobs_to_do():
        run_replay(each)
    job.refresh_from_db()
    return job


def come_back(world: World, *results: str) -> None:
    for result in results:
        world.kma_takes(KEY, result)
    world.bring_everything()


def test_a_ladder_goes_on_as_long_as_its_letters_are_handled(world: World) -> None:
    dead(world, 8)
    job = turn(world, all_of(world, Options(ladder=True)))
    assert (job.counts["given_back"], job.wait_reason) == (1, "outcomes")
    assert turn(world, job).counts["given_back"] == 1, "nobody has said anything yet"
    come_back(world, "handled")
    assert turn(world, job).counts["given_back"] == 6
    come_back(world, *["handled"] * 5)
    job = turn(world, job)
    assert (job.state, job.counts["given_back"], world.waiting(KEY)) == (JobState.DONE, 8, 2)


def test_a_ladder_stops_by_itself_when_too_many_fail_again(world: World) -> None:
    dead(world, 40)
    job = turn(world, all_of(world, Options(ladder=True, ladder_percent=10)))
    come_back(world, "handled")
    turn(world, job)
    come_back(world, "handled", "handled", "handled", "handled", "dead")
    turn(world, job)
    job = turn(world, job)
    assert (job.state, job.counts["given_back"], job.counts["dead_again"]) == (JobState.STOPPED, 6, 1)
    assert job.finished_at is not None and not job.items.filter(state="planned").exists()
    assert len(world.lying(f"DLQ.{KEY}")) == 35
    stopped = AuditEntry.objects.get(action="replay.stopped")
    assert stopped.detail["why"] == "failing"


def test_a_ladder_stops_when_the_setting_trips(world: World) -> None:
    dead(world, 8)
    job = turn(world, all_of(world, Options(ladder=True)))
    come_back(world, "handled")
    setting = world.settings[KEY]
    type(setting).objects.filter(pk=setting.pk).update(
        enabled=False, state_since=timezone.now() + timedelta(seconds=1)
    )
    turn(world, job)
    job = turn(world, job)
    assert (job.state, job.counts["given_back"]) == (JobState.STOPPED, 1)
    assert AuditEntry.objects.get(action="replay.stopped").detail["why"] == "disabled"


def test_a_job_waits_for_its_run_window(world: World) -> None:
    dead(world, 2)
    local = timezone.localtime(timezone.now())
    opens, closes = (local + timedelta(hours=2)).time(), (local + timedelta(hours=3)).time()
    job = turn(world, all_of(world, Options(window_from=opens, window_until=closes)))
    assert (job.wait_reason, world.waiting(KEY)) == ("window", 0)
    ReplayJob.objects.filter(pk=job.pk).update(window_from=(local - timedelta(hours=1)).time())
    job = turn(world, job)
    assert (job.state, world.waiting(KEY)) == (JobState.DONE, 2)


def test_a_slow_job_moves_no_more_than_a_seconds_letters_at_a_time(world: World) -> None:
    dead(world, 7)
    job = turn(world, all_of(world, Options(per_second=3)))
    for _ in range(3):
        job = turn(world, job)
    pieces = list(job.slices.order_by("number"))
    assert [piece.size for piece in pieces] == [3, 3, 1]
    moved = [piece.moved_at for piece in pieces if piece.moved_at]
    assert all(later - earlier >= timedelta(seconds=1) for earlier, later in pairwise(moved))
    assert (job.state, world.waiting(KEY)) == (JobState.DONE, 7)


def test_nothing_moves_before_a_second_person_agrees(world: World, settings: Any) -> None:
    settings.MA_SECOND_PERSON_ABOVE = 1
    dead(world, 2)
    job = turn(world, all_of(world, Options()))
    assert (job.state, world.waiting(KEY)) == (JobState.AWAITING, 0)
    perform(ApproveReplay, job, world.other)
    assert (turn(world, job).state, world.waiting(KEY)) == (JobState.DONE, 2)
