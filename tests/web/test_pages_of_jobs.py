"""The page of a job refreshes, with ages, while the job goes on. Afterwards it is left alone, so it says
times."""

from collections.abc import Callable

import pytest
from django.utils import timezone

from dlq.models import JobState, ReplayItem, ReplayJob
from dlq.models.message_action import WaitingAction, WaitingState
from insights.models import PipelineRun
from tests.web.factories import World
from tests.web.insight_rows import run_row
from tests.web.pages import Elements, looked_at, signed_in


def replay(world: World, over: bool) -> str:
    job = world.job
    assert job is not None
    ReplayItem.objects.filter(job=job).update(outcome="handled", outcome_at=timezone.now())
    ReplayJob.objects.filter(pk=job.pk).update(
        state=JobState.DONE if over else JobState.RUNNING,
        finished_at=timezone.now() if over else None,
        counts={"given_back": 1000, "handled": 1000},
    )
    return f"/replays/{job.pk}/"


def message_action(world: World, over: bool) -> str:
    assert world.waiting is not None
    WaitingAction.objects.filter(pk=world.waiting.pk).update(
        state=WaitingState.DONE if over else WaitingState.RUNNING,
        finished_at=timezone.now() if over else None,
    )
    return f"/waiting-actions/{world.waiting.pk}/"


def pipeline_run(world: World, over: bool) -> str:
    PipelineRun.objects.all().delete()
    return f"/insights/runs/{run_row('done' if over else 'running').pk}/"


JOBS = [replay, message_action, pipeline_run]


def refreshes(page: Elements) -> bool:
    return any(attrs.get("id") == "live" and "hx-get" in attrs for _tag, attrs in page.found)


def ages(page: Elements) -> list[str]:
    """The times of the page itself that are not written out."""
    return [
        attrs["datetime"] or ""
        for tag, attrs in page.found
        if tag == "time" and attrs.get("data-show") != "local"
    ]


@pytest.mark.parametrize("job", JOBS)
def test_a_job_that_goes_on_is_refreshed_and_says_ages(world: World, job: Callable[..., str]) -> None:
    page = looked_at(signed_in(world, "chief"), job(world, over=False))

    assert refreshes(page)
    assert ages(page)


@pytest.mark.parametrize("job", JOBS)
def test_a_job_that_is_over_is_left_alone_and_says_times(world: World, job: Callable[..., str]) -> None:
    page = looked_at(signed_in(world, "chief"), job(world, over=True))

    assert not refreshes(page)
    assert ages(page) == []


def test_a_replay_without_all_outcomes_says_why_it_goes_on_refreshing(world: World) -> None:
    path = replay(world, over=True)
    assert world.job is not None
    ReplayJob.objects.filter(pk=world.job.pk).update(counts={"given_back": 1000, "handled": 999})
    page = looked_at(signed_in(world, "chief"), path)

    assert refreshes(page)
    assert ages(page) == []
    assert "This page refreshes until the outcome of every message is known." in page.text


def test_the_bar_of_the_pipeline_says_when_the_results_were_computed(world: World) -> None:
    PipelineRun.objects.all().delete()
    run_row()
    page = looked_at(signed_in(world, "chief"), "/insights/run-bar/")

    assert page.texts and ages(page) == []
