"""Short steps for a worker. Each may run twice; the rows say what is still to do."""

from celery import shared_task
from django.utils import timezone

from insights.archive.planning import settle_all
from insights.runs.reaper import tend


@shared_task(name="insights.settle")
def settle_task() -> None:
    """Retention deletes what is in settled blocks: it need not wait for the next run."""
    settle_all(timezone.now())


@shared_task(name="insights.pipeline")
def pipeline_task() -> None:
    """Begins the nightly run, starts the process of one that waits, ends one whose process is gone."""
    tend(timezone.now())
