"""The row with which an activation begins."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Model

from agents.activations.plan import plan_runs
from agents.liveness import poll_after_commit
from agents.models import Activation, Destination, GroupActivation, LaunchSetting, Trigger
from agents.models.activation import OPEN_ACTIVATIONS
from agents.state_history import note

# -- the setting as it was at the start, to compare activations ----------------------------------------------


FIELDS = (
    "agent", "timing", "spread", "mode", "concurrency", "breaker_m", "count_once", "try_one_first",
    "drain_idle_seconds", "drain_wait_seconds", "drain_limit_messages", "drain_limit_minutes",
    "restart_seconds",
    "grace_seconds", "handling_timeout_seconds", "transaction_timeout_seconds", "isolate", "child_memory_mb",
    "parameters", "masked_properties", "dups_ok_messages", "dups_ok_seconds",
    "acknowledgement_timeout_seconds", "acknowledgement_property", "committed_destination",
    "rolled_back_destination",
    "after_last", "exception_destination", "duplicate_key", "duplicate_window_seconds", "ordered",
    "blocked_seconds",
)  # fmt: skip
OF_DESTINATION = (
    "max_attempts",
    "delay_ms",
    "multiplier",
    "max_delay_ms",
    "collision_avoidance",
    "expiry_ms",
)


@dataclass(frozen=True, slots=True)
class Changed:
    """A field, or one parameter of `parameters`; None: it was not there."""

    name: str
    old: Any
    new: Any


def launched_with(setting: LaunchSetting) -> dict[str, Any]:
    """Returns it as JSON: fields that matter to its runs, by their names; those of its destination after
    `destination.`."""
    said = {name: getattr(setting, name) for name in FIELDS} | {"pool": setting.pool.name}
    if setting.destination is not None:
        said["destination"] = setting.destination.name
        said |= {f"destination.{name}": getattr(setting.destination, name) for name in OF_DESTINATION}
    return said


def changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Changed]:
    """Returns what differs, in the order of the fields; of the parameters each by itself."""
    before, after = _flat(old), _flat(new)
    names = [*before, *(name for name in after if name not in before)]
    return [
        Changed(name, before.get(name), after.get(name))
        for name in names
        if before.get(name) != after.get(name)
    ]


def field_label(name: str) -> str:
    """The name of a field as people read it; a parameter's own."""
    head, _dot, rest = name.partition(".")
    if head == "parameters" and rest:
        return f"{_verbose(LaunchSetting, 'parameters')}: {rest}"
    if head == "destination" and rest:
        return _verbose(Destination, rest)
    return _verbose(LaunchSetting, head)


def _verbose(model: type[Model], name: str) -> str:
    return str(getattr(model._meta.get_field(name), "verbose_name", name))


def _flat(said: Mapping[str, Any]) -> dict[str, Any]:
    flat = {name: value for name, value in said.items() if name != "parameters"}
    parameters = said.get("parameters")
    return flat | {f"parameters.{name}": value for name, value in (parameters or {}).items()}


# -- trial: one message first --------------------------------------------------------------------------------
# One run, one message at a time, until the first success. It succeeds → the rest is started. It fails → the
# setting is off again, by the trip that was ended.


def begins_with_trial(setting: LaunchSetting) -> bool:
    """Says so for an activation that starts now: the first since the setting was enabled, or none before
    tried to the end.

    A standalone agent has no messages to try."""
    chosen = setting.first_tries_one
    wanted = setting.try_one_first if chosen is None else chosen
    if not wanted or not setting.takes_messages:
        return False
    since = Activation.objects.filter(setting=setting, enabling=setting.enablings)
    return not since.filter(trial=False).exists()


def end_trial(activation_id: UUID, now: datetime) -> bool:
    """Returns whether it was one. A message was handled well: full speed here, and the other servers begin.
    Not to be called by who holds locks of runs: who switches settings locks the activation first.

    Killed before the commit: the next report of the run says it again. After it: `tend` plans what is
    missing.
    """
    with transaction.atomic():
        tried = Activation.objects.filter(pk=activation_id, trial=True, state__in=OPEN_ACTIVATIONS)
        if not tried.update(trial=False):
            return False
        activation = Activation.objects.select_related("setting").get(pk=activation_id)
        note(activation.setting, "trial", "one message", "full speed", now=now, activation=activation)
        poll_after_commit(activation.runs.filter(wanted=True).values_list("server__name", flat=True))
    plan_runs(activation_id, now)
    return True


def open_activation(
    setting: LaunchSetting,
    trigger: Trigger,
    by: Any,
    now: datetime,
    *,
    group_activation: GroupActivation | None = None,
) -> Activation:
    """The caller has locked the setting and knows that none is open; its runs are planned by the caller or by
    tend."""
    before = (
        Activation.objects.filter(setting=setting)
        .order_by("-number")
        .values_list("number", flat=True)
        .first()
    )
    return Activation.objects.create(
        setting=setting,
        trigger=trigger,
        started_by=by if getattr(by, "pk", None) else None,
        started_at=now,
        group_activation=group_activation,
        trial=begins_with_trial(setting),
        enabling=setting.enablings,
        number=(before or 0) + 1,
        launched_with=launched_with(setting),
    )
