"""The engine of jobs: who takes one, what a turn does with it, and what stays when a worker is gone."""

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import pytest
from django.db.models import Q
from django.utils import timezone

from broker.port import BrokerUnavailable
from console import hooks
from console.jobs.engine import (
    ANOTHER,
    PAUSE,
    RETRY,
    STARTED,
    WORKER_FAILED,
    Wait,
    Worker,
    claim,
    held,
    run,
    start_due,
)
from console.reasons import NO_REASON, said
from dlq.models import ReplayJob
from dlq.models.message_action import WaitingAction
from ma_site.tasks import run_job, start_jobs

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]
Step = Callable[[ReplayJob], bool | Wait]


class Mover(Worker[ReplayJob]):
    """Does these steps, one after the other."""

    model, workable, lane = ReplayJob, Q(state__in=["planned", "running"]), "source_queue"

    def __init__(self, *steps: Step) -> None:
        self.steps = list(steps)

    def begun(self, job: ReplayJob, now: Any) -> dict[str, Any]:
        return {"state": "running"}

    def step(self, job: ReplayJob) -> bool | Wait:
        return self.steps.pop(0)(job)


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    told: list[tuple[str, str]] = []
    monkeypatch.setattr("console.jobs.engine.send", lambda task, kind, job, **_: told.append((kind, job)))
    return told


def job(queue: str = "DLQ.a", **columns: Any) -> ReplayJob:
    return ReplayJob.objects.create(setting_key="a", source_queue=queue, scope="one", **columns)


def now_of(row: ReplayJob) -> ReplayJob:
    row.refresh_from_db()
    return row


def more(row: ReplayJob) -> bool:
    return True


def done(row: ReplayJob) -> bool:
    assert row.end(state="done")
    return False


def away(row: ReplayJob) -> bool:
    raise BrokerUnavailable("the connection is lost")


def broken(row: ReplayJob) -> bool:
    raise KeyError("a body")


def paused_meanwhile(row: ReplayJob) -> bool:
    ReplayJob.objects.filter(pk=row.pk).update(state="paused")
    return True


def test_one_of_two_workers_takes_a_job() -> None:
    one = job()
    mine = claim(Mover(), one.pk, timezone.now())
    assert mine is not None and mine.state == "running" and mine.holder
    assert claim(Mover(), one.pk, timezone.now()) is None
    assert held(Mover(), mine, timezone.now()) == mine


def test_what_is_over_is_not_taken() -> None:
    assert claim(Mover(), job(state="done").pk, timezone.now()) is None
    assert claim(Mover(), job(state="paused").pk, timezone.now()) is None


def test_of_a_lane_one_job_at_a_time_is_worked_on() -> None:
    first, second, other = job(), job(), job("DLQ.b")
    mine = claim(Mover(), first.pk, timezone.now())
    assert mine is not None
    assert claim(Mover(), second.pk, timezone.now()) is None
    assert now_of(second).wait_reason == ANOTHER
    assert claim(Mover(), other.pk, timezone.now()) is not None
    mine.release(until=timezone.now() + PAUSE, wait_reason="rate")
    assert claim(Mover(), second.pk, timezone.now()) is not None, "who pauses is not at work"


def test_who_was_silent_too_long_changes_nothing_any_more() -> None:
    one = job()
    silent = claim(Mover(), one.pk, timezone.now())
    later = timezone.now() + ReplayJob.lease
    mine = claim(Mover(), one.pk, later)
    assert silent is not None and mine is not None
    silent.release(problem=said("it was away"))
    assert not silent.renew(later) and not silent.end(state="failed")
    assert held(Mover(), silent, later) is None
    assert (now_of(one).holder, one.state, one.problem) == (mine.holder, "running", NO_REASON)


def test_a_turn_goes_on_until_the_job_is_over(sent: list[Any]) -> None:
    one = job()
    run(Mover(more, more, done), one.pk, timezone.now())
    assert (now_of(one).state, one.holder, one.lease_until) == ("done", None, None)
    assert sent == []


def test_a_turn_that_is_over_lets_others_have_the_worker(
    sent: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("console.jobs.engine.TURN", 0.0)
    one = job()
    run(Mover(more), one.pk, timezone.now())
    assert (now_of(one).state, one.holder, one.lease_until) == ("running", None, None)
    assert sent == [("dlq.replayjob", str(one.pk))]


def test_a_job_that_waits_says_for_what_and_is_not_taken_before(sent: list[Any]) -> None:
    one, until = job(), timezone.now() + timedelta(minutes=1)
    run(Mover(lambda row: Wait(until, "window")), one.pk, timezone.now())
    assert (now_of(one).holder, one.lease_until, one.wait_reason) == (None, until, "window")
    assert claim(Mover(), one.pk, timezone.now()) is None
    again = claim(Mover(), one.pk, until)
    assert again is not None and again.wait_reason == ""


def test_what_is_paused_between_two_steps_is_let_go(sent: list[Any]) -> None:
    one = job()
    run(Mover(paused_meanwhile), one.pk, timezone.now())
    assert (now_of(one).state, one.holder, one.lease_until) == ("paused", None, None)


@pytest.mark.parametrize(
    ("step", "problem"), [(away, said("the connection is lost")), (broken, WORKER_FAILED(type="KeyError"))]
)
def test_a_problem_is_shown_until_the_next_try(sent: list[Any], step: Step, problem: Any) -> None:
    one = job()
    if step is broken:
        with pytest.raises(KeyError):
            run(Mover(step), one.pk, timezone.now())
    else:
        run(Mover(step), one.pk, timezone.now())
    assert (now_of(one).problem, one.wait_reason, one.holder) == (problem, RETRY, None)
    assert one.lease_until is not None and claim(Mover(), one.pk, timezone.now()) is None
    claim(Mover(), one.pk, one.lease_until)
    assert now_of(one).problem == NO_REASON


def test_a_problem_is_forgotten_also_by_a_try_that_another_job_forbids() -> None:
    first, second = job(), job(problem=said("the connection is lost"), wait_reason=RETRY)
    assert claim(Mover(), first.pk, timezone.now()) is not None
    assert claim(Mover(), second.pk, timezone.now()) is None
    assert now_of(second).problem == NO_REASON


def test_why_a_job_ends_outlives_what_goes_wrong_afterwards(sent: list[Any]) -> None:
    def refused(row: ReplayJob) -> bool:
        ReplayJob.objects.filter(pk=row.pk).update(problem=said("no such queue"))
        return True

    one = job()
    run(Mover(refused, away), one.pk, timezone.now())
    assert now_of(one).problem == said("no such queue")
    ReplayJob.objects.update(lease_until=None)
    run(Mover(done), one.pk, timezone.now())
    assert (now_of(one).state, one.problem) == ("done", said("no such queue"))


def test_what_nobody_works_on_is_started_one_of_a_lane_the_oldest_first(sent: list[Any]) -> None:
    old, young, other = job(), job(), job("DLQ.b")
    for number in range(STARTED):
        job(f"DLQ.{number}")
    taken = job("DLQ.c")
    claim(Mover(), taken.pk, timezone.now())
    start_due(Mover(), timezone.now())
    names = [pk for _kind, pk in sent]
    assert names[:2] == [str(old.pk), str(other.pk)] and len(names) == STARTED
    assert str(young.pk) not in names and str(taken.pk) not in names


def test_every_kind_of_job_is_started_and_run_by_its_name(
    sent: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Other(Worker[WaitingAction]):
        model, workable = WaitingAction, Q(state="planned")

        def step(self, job: WaitingAction) -> bool:
            return not job.end(state="done")

    workers: Sequence[Worker[Any]] = (Mover(done), Other())
    monkeypatch.setattr(hooks.job_workers, "_implementations", [lambda: workers])
    one = job()
    two = WaitingAction.objects.create(setting_key="a", kind="hold", part="waiting")
    start_jobs()
    assert sent == [("dlq.replayjob", str(one.pk)), ("dlq.waitingaction", str(two.pk))]
    for kind, pk in sent:
        run_job(kind, pk)
    two.refresh_from_db()
    assert (now_of(one).state, two.state) == ("done", "done")
