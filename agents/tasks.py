"""Short steps for a worker. Each may run twice; the rows say what is still to do."""

from celery import shared_task
from django.utils import timezone

from agents.activations.drains import watch_drains
from agents.destinations.policies import watch_policies
from agents.provisioning.provision import provision_setting
from agents.provisioning.subscriptions import watch_subscriptions
from agents.reconciler import tend
from agents.schedules.tick import tick


@shared_task(name="agents.tend")
def tend_task() -> None:
    tend(timezone.now())


@shared_task(name="agents.watch_drains")
def watch_drains_task() -> None:
    watch_drains(timezone.now())


@shared_task(name="agents.watch_subscriptions")
def watch_subscriptions_task() -> None:
    watch_subscriptions(timezone.now())


@shared_task(name="agents.watch_policies")
def watch_policies_task() -> None:
    watch_policies(timezone.now())


@shared_task(name="agents.provision")
def provision(setting_id: int) -> None:
    provision_setting(setting_id)


@shared_task(name="agents.tick")
def tick_task(schedule_id: int) -> None:
    """Starts when a window begins: reading all schedules would find it some seconds late."""
    tick(schedule_id, timezone.now())
