"""Short steps for a worker. Each may run twice; the rows say what is still to do."""

from celery import shared_task
from django.utils import timezone

from failures.error_groups.regressions import forget_versions
from failures.error_groups.rollup import fold_all, forget_hours


@shared_task(name="failures.fold")
def fold_task() -> None:
    fold_all(timezone.now())
    forget_hours(timezone.now())
    forget_versions(timezone.now())
