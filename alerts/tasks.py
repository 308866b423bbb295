"""Short steps for a worker. Each may run twice; the rows say what is still to do."""

from celery import shared_task
from django.utils import timezone

from alerts.evaluation import evaluate_all
from alerts.notices.delivery import send_due


@shared_task(name="alerts.send_notices")
def send_notices_task() -> None:
    send_due(timezone.now())


@shared_task(name="alerts.evaluate")
def evaluate_task() -> None:
    evaluate_all(timezone.now())
