"""Carries wishes out on the broker and reads back that they are there. One process at a time, any of them."""

import time
from datetime import datetime, timedelta

import structlog
from django.conf import settings
from django.db.models import F, Q, QuerySet
from django.utils import timezone

from agents.isolation import isolated
from agents.models import Hold, LaunchSetting, ProvisionState
from agents.provisioning.topology import REMOVING, wanted_hash
from agents.state_history import note
from broker.management.desired_topology import Step, base_topology, setting_topology
from broker.management.queues import find
from broker.management.topology import Difference, apply, differences
from broker.management.waiting_messages import move_all
from broker.port import BrokerError, BrokerTimeout, BrokerUnavailable
from console.broker import management
from console.processes import lock, once_per
from console.reasons import said
from contract.names import ahead_queue

log = structlog.get_logger(__name__)

HELD_FOR = timedelta(minutes=2)
RETRY_FAILED_EVERY = timedelta(seconds=30)
# How long manage.py provision waits for another process that is at it.
PATIENCE_SECONDS = 60.0
LONGEST_PROBLEM = 2000


def steps_of(setting: LaunchSetting) -> list[Step]:
    """Returns what the broker must have for this setting, base included. Nothing for a standalone agent."""
    if not setting.takes_messages:
        return []
    destination = setting.subscribed
    return setting_topology(
        setting.key,
        destination.name,
        destination.policy,
        setting.feeds_one,
        settings.MA_DLA_ADDRESS,
        expiry_ms=destination.expiry_ms,
        held=setting.hold == Hold.AHEAD,
    )


def provision_setting(setting_id: int) -> None:
    """Does nothing while another process provisions: the next `tend` finds what is still pending."""
    with lock("provision", HELD_FOR) as free:
        if free:
            _provision(LaunchSetting.objects.filter(pk=setting_id))


def provision_due(now: datetime) -> None:
    """Provisions what is pending, and now and then what failed."""
    due = Q(provision_state=ProvisionState.PENDING) | ~Q(wanted_hash=F("provisioned_hash"))
    failed = LaunchSetting.objects.filter(provision_state=ProvisionState.FAILED)
    if failed.exists() and once_per("provision failed", RETRY_FAILED_EVERY, now):
        due |= Q(provision_state=ProvisionState.FAILED)
    else:
        due &= ~Q(provision_state=ProvisionState.FAILED)
    due &= ~Q(wanted_hash=REMOVING)
    if not LaunchSetting.objects.filter(due).exists():
        return
    with lock("provision", HELD_FOR) as free:
        if free:
            _provision(LaunchSetting.objects.filter(due))


def provision_all() -> None:
    """Base and every setting, also those that were ready: what somebody took away comes back.

    Raises BrokerError where the base cannot be made; a setting that cannot be made keeps its reason.
    """
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        with lock("provision", HELD_FOR) as free:
            if free:
                apply(management(), base_topology(settings.MA_DLA_ADDRESS))
                _provision(LaunchSetting.objects.all())
                return
        time.sleep(0.5)
    raise BrokerTimeout("another process has held the provisioning lock for a minute")


def topology_differences(setting: LaunchSetting | None = None) -> list[Difference]:
    """Returns where the broker is not as wanted, for one setting or for the base. Raises BrokerError."""
    steps = base_topology(settings.MA_DLA_ADDRESS) if setting is None else steps_of(setting)
    return differences(management(), steps)


def _provision(rows: QuerySet[LaunchSetting]) -> None:
    base_done = False
    for setting in rows.exclude(wanted_hash=REMOVING).select_related("destination"):
        with isolated("provisioning", setting=setting.key):
            try:
                if not base_done:
                    apply(management(), base_topology(settings.MA_DLA_ADDRESS))
                    base_done = True
                changed = _make(setting)
            except BrokerUnavailable as error:
                # Nothing is wrong with the wish: it stays pending, with the reason.
                LaunchSetting.objects.filter(pk=setting.pk).exclude(
                    provision_state=ProvisionState.READY
                ).update(provision_problem=str(error)[:LONGEST_PROBLEM])
                log.warning(
                    "broker unavailable, provisioning postponed", setting=setting.key, reason=str(error)
                )
                return
            except BrokerError as error:
                _failed(setting, str(error))
            else:
                _ready(setting, changed)


def _make(setting: LaunchSetting) -> list[Difference]:
    """Makes it as it is wanted at the end: a replay may begin or end its hold meanwhile, where all this took
    longer than the lock lasts. Raises BrokerError."""
    broker = management()
    changed: list[Difference] = []
    while True:
        setting.refresh_from_db(fields=["hold"])
        done = setting.hold
        changed += apply(broker, steps_of(setting))
        setting.refresh_from_db(fields=["hold"])
        if setting.hold == done:
            break
    beside = ahead_queue(setting.key)
    # Nobody takes from there while nobody holds it: the rows are of before a hold, brought back.
    if not setting.hold and setting.takes_messages and find(broker, "listQueues", beside) is not None:
        move_all(broker, beside, setting.key)
    return changed


def _ready(setting: LaunchSetting, changed: list[Difference]) -> None:
    """Only what was made is ready: a wish that changed meanwhile stays pending."""
    made, now = wanted_hash(setting), timezone.now()
    row = LaunchSetting.objects.filter(pk=setting.pk)
    row.filter(wanted_hash="").update(wanted_hash=made)
    stored = row.filter(wanted_hash=made).update(
        provisioned_hash=made, provision_state=ProvisionState.READY, provision_problem="", provisioned_at=now
    )
    if stored and setting.provision_state != ProvisionState.READY:
        note(setting, "provision", setting.provision_state, ProvisionState.READY, now=now)
    log.info("provisioned", setting=setting.key, changed=[str(difference) for difference in changed])


def _failed(setting: LaunchSetting, problem: str) -> None:
    row = LaunchSetting.objects.filter(pk=setting.pk)
    row.update(provision_state=ProvisionState.FAILED, provision_problem=problem[:LONGEST_PROBLEM])
    if (setting.provision_state, setting.provision_problem) != (
        ProvisionState.FAILED,
        problem[:LONGEST_PROBLEM],
    ):
        now = timezone.now()
        note(
            setting,
            "provision",
            setting.provision_state,
            ProvisionState.FAILED,
            now=now,
            reason=said(problem),
        )
    log.error("provisioning failed", setting=setting.key, reason=problem)
