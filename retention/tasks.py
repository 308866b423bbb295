"""Short steps for a worker. Each may run twice; the rows say what is still to do."""

from celery import shared_task
from django.utils import timezone

from retention.worker import run_retention_turn


@shared_task(name="retention.run")
def retention_task() -> None:
    """Beat asks often; mostly there is nothing to do yet."""
    run_retention_turn(timezone.now())
