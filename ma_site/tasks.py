"""Short steps for a worker that need the whole site."""

from celery import shared_task
from django.utils import timezone

from ma_site.measuring import measure


@shared_task(name="ma_site.measure")
def measure_components() -> None:
    measure(timezone.now())
