"""Short steps for a worker that need the whole site."""

from celery import shared_task
from django.utils import timezone

from agents.site.components import measure
from agents.site.sign_ins import forget_old_counters


@shared_task(name="ma_site.measure")
def measure_components() -> None:
    now = timezone.now()
    measure(now)
    forget_old_counters(now)
