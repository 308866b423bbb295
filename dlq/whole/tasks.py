"""Celery tasks of whole letters. The rows are the truth."""

from celery import shared_task
from django.utils import timezone

from dlq.letter_queues import letter_queues
from dlq.whole import reading
from dlq.whole.asking import RUN_TASK, start


@shared_task(name=RUN_TASK)
def fetch_whole(fetch_id: str) -> None:
    reading.run(int(fetch_id), letter_queues())


@shared_task(name="dlq.tend_wholes")
def tend_wholes() -> None:
    for fetch in reading.tend(timezone.now()):
        start(fetch)
