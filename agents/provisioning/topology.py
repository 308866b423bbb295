"""Saving a setting or a destination stores what is wanted on the broker; a worker carries it out."""

import hashlib
import json
from dataclasses import asdict
from typing import Any

from django.conf import settings
from django.db import transaction

from agents.liveness import poll_after_commit
from agents.models import Destination, LaunchSetting, ProvisionState
from console.task_queue import send

# Grows when provisioning makes something more of the same fields: everything is then provisioned anew.
TOPOLOGY_VERSION = 3
# A wish for nothing, see `settings/removal`: whoever provisions leaves the setting alone.
REMOVING = "removing"


def desired_topology(setting: LaunchSetting) -> dict[str, Any]:
    """Every field that decides what the broker must have for this setting."""
    if not setting.takes_messages:
        return {"version": TOPOLOGY_VERSION, "key": setting.key, "kind": setting.kind}
    destination = setting.subscribed
    return {
        "version": TOPOLOGY_VERSION,
        "key": setting.key,
        "address": destination.name,
        "policy": asdict(destination.policy),
        "expiry_ms": destination.expiry_ms,
        "accept_queue_senders": destination.accept_queue_senders,
        "exclusive": setting.feeds_one,
        "dead_letter_address": settings.MA_DLA_ADDRESS,
    }


def wanted_hash(setting: LaunchSetting) -> str:
    return hashlib.sha256(json.dumps(desired_topology(setting), sort_keys=True).encode()).hexdigest()


@transaction.atomic
def save_setting(setting: LaunchSetting, by: Any = None) -> LaunchSetting:
    """Saves the fields that people choose; machine facts are left to their own writers. Raises
    ValidationError for a change that is refused now, though it was allowed when it was checked: somebody
    enabled the setting meanwhile."""
    if setting._state.adding:
        setting.wanted_hash = wanted_hash(setting)
        setting.save()
    else:
        facts = {field.name for field in LaunchSetting._meta.concrete_fields if not field.editable}
        chosen = {field.name for field in LaunchSetting._meta.concrete_fields} - facts - {"id"}
        LaunchSetting.objects.select_for_update(no_key=True).get(pk=setting.pk)
        setting.clean()
        setting.save(update_fields=sorted(chosen))
        store_desired_topology(setting)
    provision_after_commit(setting)
    poll_after_commit(setting.pool.servers.values_list("name", flat=True))
    return setting


@transaction.atomic
def save_destination(destination: Destination) -> Destination:
    """The policy belongs to the address: every setting that shares it gets a new wish."""
    destination.save()
    for setting in destination.settings.exclude(wanted_hash=REMOVING).select_related("destination", "pool"):
        store_desired_topology(setting)
        provision_after_commit(setting)
        poll_after_commit(setting.pool.servers.values_list("name", flat=True))
    return destination


def store_desired_topology(setting: LaunchSetting) -> None:
    """The wish of the fields as they are; where it is another one it is to be carried out."""
    setting.wanted_hash = wanted_hash(setting)
    row = LaunchSetting.objects.filter(pk=setting.pk)
    row.update(wanted_hash=setting.wanted_hash)
    if row.exclude(provisioned_hash=setting.wanted_hash).update(
        provision_state=ProvisionState.PENDING, provision_problem=""
    ):
        setting.provision_state = ProvisionState.PENDING
        setting.provision_problem = ""


def provision_after_commit(setting: LaunchSetting) -> None:
    pk = setting.pk
    if setting.provision_state != ProvisionState.READY:
        transaction.on_commit(lambda: _ask_for_provisioning(pk), robust=True)


def _ask_for_provisioning(pk: int) -> None:
    """Best effort: what is still pending is found by the next `agents.tend`."""
    send("agents.provision", pk, expires=60)
