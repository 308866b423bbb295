"""What a setting said when an activation of it began, so that two activations can be compared later."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Model

from agents.models import Destination, LaunchSetting

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
    """As JSON: fields that matter to its runs, by their names; those of its destination after
    `destination.`."""
    said = {name: getattr(setting, name) for name in FIELDS} | {"pool": setting.pool.name}
    if setting.destination is not None:
        said["destination"] = setting.destination.name
        said |= {f"destination.{name}": getattr(setting.destination, name) for name in OF_DESTINATION}
    return said


def changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Changed]:
    """What differs, in the order of the fields; of the parameters each by itself."""
    before, after = _flat(old), _flat(new)
    names = [*before, *(name for name in after if name not in before)]
    return [
        Changed(name, before.get(name), after.get(name))
        for name in names
        if before.get(name) != after.get(name)
    ]


def label(name: str) -> str:
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
