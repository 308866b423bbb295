"""Short steps for a worker. Each may run twice; the rows say what is still to do."""

from celery import shared_task
from django.utils import timezone

from retention.worker import work


@shared_task(name="retention.run")
def retention_task() -> None:
    """Beat asks often; mostly there is nothing to do yet."""
    work(timezone.now())
