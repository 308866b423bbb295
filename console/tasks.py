"""Celery tasks: short steps that may run twice. The rows are the truth."""

from itertools import chain

from celery import shared_task
from django.utils import timezone

from console import hooks
from console.jobs.worker import RUN_TASK, kind_of, run, start_due


@shared_task(name=RUN_TASK)
def run_job(kind: str, pk: str) -> None:
    """Works on a job for a while, unless somebody else does."""
    run(next(each for each in chain(*hooks.job_workers()) if kind_of(each.model) == kind), pk, timezone.now())


@shared_task(name="console.start_jobs")
def start_jobs() -> None:
    """Jobs of every kind that nobody works on."""
    for worker in chain(*hooks.job_workers()):
        start_due(worker, timezone.now())
