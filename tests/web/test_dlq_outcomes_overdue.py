"""What nothing was heard of for an hour is unknown, so that whoever waits for outcomes comes to an end; what
is heard later takes its place."""

from datetime import timedelta
from typing import Any

import pytest
from django.urls import reverse

from agents.models import Run
from dlq.api.replays import ReplaySerializer
from dlq.models import DeadLetter, ItemState, LetterState, ReplayItem, ReplayJob, ReplaySlice
from dlq.outcomes import results
from dlq.outcomes.settlement import PATIENCE, end_overdue
from dlq.replay.rules import ladder
from dlq.replay.worker import pacer
from tests.web import letters, reports
from tests.web.factories import World
from tests.web.pages import looked_at, signed_in
from tests.web.reports import AT
from tests.web.test_dlq_outcomes import outcomes, report

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db]
MOVED = AT + timedelta(minutes=5)


@pytest.fixture
def run() -> Run:
    return reports.run(reports.setting(), reports.server())


def moved_job(run: Run, count: int) -> ReplayJob:
    rows = [letters.dead("orders", number, f"ID:{number}") for number in range(10, 10 + count)]
    job = letters.given_back(run.activation.setting, *rows)
    ReplayJob.objects.filter(pk=job.pk).update(started_at=MOVED, finished_at=MOVED)
    ReplaySlice.objects.filter(job=job).update(moved_at=MOVED, moved=count, moved_exactly=count)
    return ReplayJob.objects.get(pk=job.pk)


def unconfirm(job: ReplayJob, moved_exactly: int | None) -> None:
    """As if the walk had found all of it gone, and our moves took so many."""
    items = ReplayItem.objects.filter(job=job)
    DeadLetter.objects.filter(pk__in=items.values("letter")).update(state=LetterState.GONE)
    number = items.update(state=ItemState.UNCONFIRMED)
    ReplaySlice.objects.filter(job=job).update(moved_exactly=moved_exactly)
    ReplayJob.objects.filter(pk=job.pk).update(counts={"unconfirmed": number})


def job_of(job: ReplayJob) -> ReplayJob:
    return ReplayJob.objects.get(pk=job.pk)


def hour(minutes: int = 0) -> None:
    list(end_overdue(MOVED + PATIENCE + timedelta(minutes=minutes)))


def counts(job: ReplayJob) -> dict[str, int]:
    job.refresh_from_db()
    return {name: number for name, number in job.counts.items() if number}


def test_after_an_hour_nobody_waits_and_a_later_report_takes_its_place(run: Run) -> None:
    job = moved_job(run, 3)
    report(run, "ID:10", 20, "handled")
    hour(-1)
    assert outcomes(job) == ["handled", "", ""]
    hour()
    assert outcomes(job) == ["handled", "unknown", "unknown"]
    assert counts(job) == {"given_back": 3, "handled": 1, "unknown": 2}
    assert job.outcomes_ended_at is not None
    report(run, "ID:11", 21, "handled", minute=200)
    letters.dead("orders", 100, "ID:12")
    assert outcomes(job) == ["handled", "handled", "dead_again"]
    assert counts(job) == {"given_back": 3, "handled": 2, "dead_again": 1}


def test_a_job_that_still_moves_is_not_over_though_its_first_letters_are_unknown(run: Run) -> None:
    job = moved_job(run, 2)
    ReplayJob.objects.filter(pk=job.pk).update(finished_at=None, state="running")
    hour()
    job.refresh_from_db()
    assert (outcomes(job), job.outcomes_ended_at) == (["unknown", "unknown"], None)


def test_as_many_as_moved_are_confirmed_and_the_rest_was_taken_elsewhere(run: Run) -> None:
    job = moved_job(run, 3)
    unconfirm(job, moved_exactly=2)
    report(run, "ID:10", 20, "handled")
    assert counts(job) == {"given_back": 1, "unconfirmed": 2, "handled": 1}
    report(run, "ID:12", 22, "failed")
    assert counts(job) == {"given_back": 2, "taken_elsewhere": 1, "handled": 1, "failed_again": 1}
    assert job.items.get(state="taken_elsewhere").letter.message_id == "ID:11"
    assert sorted(job.items.values_list("letter__state", flat=True)) == ["given_back", "given_back", "gone"]


def test_what_is_unconfirmed_and_lies_in_its_queue_again_was_never_moved(run: Run) -> None:
    job = moved_job(run, 1)
    unconfirm(job, moved_exactly=None)
    DeadLetter.objects.update(state=LetterState.DEAD)
    hour()
    assert counts(job) == {"taken_elsewhere": 1}
    assert DeadLetter.objects.get().state == LetterState.DEAD


def test_a_letter_that_another_job_has_meanwhile_is_that_ones(run: Run) -> None:
    job = moved_job(run, 1)
    unconfirm(job, moved_exactly=None)
    letters.given_back(run.activation.setting, DeadLetter.objects.get())
    report(run, "ID:10", 20, "handled")
    assert ReplayItem.objects.filter(state="given_back").count() == 1


def test_nothing_is_concluded_where_a_move_was_not_answered(run: Run) -> None:
    job = moved_job(run, 2)
    unconfirm(job, moved_exactly=None)
    results.conclude(job, ReplaySlice.objects.get().pk, MOVED)
    report(run, "ID:10", 20, "handled")
    hour()
    assert outcomes(job) == ["handled", "unknown"]
    assert counts(job) == {"given_back": 1, "unconfirmed": 1, "handled": 1, "unknown": 1}


def test_a_step_of_a_ladder_with_too_much_unknown_stops(run: Run) -> None:
    job = moved_job(run, 4)
    report(run, "ID:10", 20, "handled")
    assert ladder.next_step(pacer.outcomes_of(job, 0), 10, ladder.Surroundings()).why == "outcomes"
    hour()
    found = pacer.outcomes_of(job, 0)
    assert (found.handled, found.unknown, found.open) == (1, 3, 0)
    assert ladder.next_step(found, 10, ladder.Surroundings()).why == "unknown"
    assert ladder.next_step(found, 75, ladder.Surroundings()).decision is ladder.Decision.GO


def test_what_another_consumer_took_is_no_outcome_of_a_step(run: Run) -> None:
    job = moved_job(run, 3)
    unconfirm(job, moved_exactly=1)
    report(run, "ID:10", 20, "handled")
    found = pacer.outcomes_of(job, 0)
    assert (found.handled, found.moved) == (1, 1)
    assert ladder.next_step(found, 0, ladder.Surroundings()).decision is ladder.Decision.GO


def test_the_page_and_the_interface_tell_of_both(world: World, run: Run) -> None:
    job = moved_job(run, 3)
    unconfirm(job, moved_exactly=None)
    ReplayItem.objects.filter(pk=job.items.first().pk).update(state=ItemState.TAKEN_ELSEWHERE)  # type: ignore[union-attr]
    ReplayJob.objects.filter(pk=job.pk).update(counts={"unconfirmed": 2, "taken_elsewhere": 1})
    hour()
    client: Any = signed_in(world, "chief")
    told = ReplaySerializer(job_of(job)).data
    assert (told["letters"]["taken_elsewhere"], told["letters"]["unconfirmed"]) == (1, 2)
    assert (told["outcomes"]["waiting"], told["outcomes"]["unknown"]) == (0, 2)
    page = looked_at(client, f"/replays/{job.pk}/").text
    assert "taken by another consumer 1" in page and "unknown: no report for an hour 2" in page
    for show, number in (("taken_elsewhere", 1), ("unknown", 2), ("unconfirmed", 2), ("waiting", 0)):
        rows = client.get(reverse("admin:replay", args=[job.pk]), {"show": show}).content.decode()
        assert rows.count("data-row id=") == number, show
    client.cookies["django_language"] = "ru"
    assert "забрано другим потребителем 1" in looked_at(client, f"/replays/{job.pk}/").text
