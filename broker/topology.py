"""Topology wanted against found, and the steps in between.

Everything is a `Step`: an address, a queue, an address's policy, or a key that the catch-all must leave out. Steps are
idempotent; `apply` reads each one back, because the broker's answers do not tell what it did (createQueue of an
existing queue echoes the filter it was asked for and changes nothing).
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from broker.catch_all import catch_all_filter, keys_of
from broker.errors import ManagementFailed
from broker.letters import QueueFigures, move_letters, move_letters_until, queue_figures
from broker.port import Management
from broker.rows import find
from broker.wanted import CATCH_ALL, MULTICAST, Address, LeftOut, Policy, Queue, Step, base_topology, setting_topology
from contract.properties import UNKNOWN, dead_letter_queue

__all__ = [
    "Difference",
    "QueueFigures",
    "Step",
    "apply",
    "base_topology",
    "differences",
    "move_letters",
    "move_letters_until",
    "queue_figures",
    "remove_setting",
    "setting_topology",
]

ALREADY_THERE = ("AMQ229204", "AMQ229205")


@dataclass(frozen=True, slots=True)
class Difference:
    """`what` is for people: `queue orders: filter`. `found` empty = it is not there."""

    what: str
    wanted: str
    found: str

    def __str__(self) -> str:
        return f"{self.what}: wanted {self.wanted}, found {self.found or 'nothing'}"


# -- wanted against found -------------------------------------------------------------------------------------------


def differences(management: Management, steps: Iterable[Step]) -> list[Difference]:
    """Where the broker is not as the steps want it. Changes nothing."""
    return [difference for step in steps for difference in _differences(management, step)]


def apply(management: Management, steps: Sequence[Step]) -> list[Difference]:
    """Makes the broker as the steps want it, one after the other, and returns what it changed.

    Raises ManagementFailed with the difference that stayed, BrokerUnavailable, AccessRefused. Running it again is
    harmless; what came before the failed step is done.
    """
    changed: list[Difference] = []
    for step in steps:
        before = _differences(management, step)
        if not before:
            continue
        _write(management, step)
        if after := _differences(management, step):
            raise ManagementFailed("; ".join(map(str, after)))
        changed += before
    return changed


def _differences(management: Management, step: Step) -> list[Difference]:
    if isinstance(step, Address):
        return _address_differences(management, step)
    if isinstance(step, Queue):
        return _queue_differences(management, step)
    if isinstance(step, Policy):
        return _policy_differences(management, step)
    return _left_out_differences(management, step)


def _address_differences(management: Management, step: Address) -> list[Difference]:
    found = find(management, "listAddresses", step.name)
    if found is None:
        return [Difference(f"address {step.name}", MULTICAST, "")]
    if MULTICAST not in found["routingTypes"]:
        return [Difference(f"address {step.name}", MULTICAST, found["routingTypes"])]
    return []


def _queue_differences(management: Management, step: Queue) -> list[Difference]:
    found = find(management, "listQueues", step.name)
    if found is None:
        return [Difference(f"queue {step.name}", f"on {step.address}", "")]
    wanted = {
        "address": step.address,
        "filter": step.filter,
        "exclusive": str(step.exclusive).lower(),
        "durable": "true",
        "routingType": MULTICAST,
        "paused": "false",
    }
    if step.filter == CATCH_ALL and keys_of(found["filter"]) is not None:
        del wanted["filter"]
    return [
        Difference(f"queue {step.name}: {name}", value, found[name])
        for name, value in wanted.items()
        if found[name] != value
    ]


def _policy_differences(management: Management, step: Policy) -> list[Difference]:
    found = json.loads(management.call("broker", "getAddressSettingsAsJSON", step.address))
    return [
        Difference(f"address {step.address}: {name}", str(value), str(found.get(name, "")))
        for name, value in step.settings.items()
        if found.get(name) != value
    ]


def _left_out_differences(management: Management, step: LeftOut) -> list[Difference]:
    name = dead_letter_queue(UNKNOWN)
    found = find(management, "listQueues", name)
    if found is None:
        return [Difference(f"queue {name}", f"without {step.key}", "")]
    keys = keys_of(found["filter"])
    if keys is None or step.key not in keys:
        return [Difference(f"queue {name}: filter", f"without {step.key}", found["filter"] or "no filter")]
    return []


# -- writing --------------------------------------------------------------------------------------------------------


def _write(management: Management, step: Step) -> None:
    if isinstance(step, Address):
        _create_address(management, step)
    elif isinstance(step, Queue):
        _write_queue(management, step)
    elif isinstance(step, Policy):
        management.call("broker", "addAddressSettings", step.address, json.dumps(dict(step.settings)))
    else:
        _change_catch_all(management, step.address, add=step.key)


def _create_address(management: Management, step: Address) -> None:
    try:
        management.call("broker", "createAddress", step.name, MULTICAST)
    except ManagementFailed as error:
        if not str(error).startswith(ALREADY_THERE):
            raise


def _write_queue(management: Management, step: Queue) -> None:
    selector = catch_all_filter(()) if step.filter == CATCH_ALL else step.filter
    found = find(management, "listQueues", step.name)
    if found is None:
        wanted = _queue_json(step.name, step.address, selector, step.exclusive) | {"auto-create-address": False}
        management.call("broker", "createQueue", json.dumps(wanted), True)
    elif found["address"] == step.address:
        if step.filter == CATCH_ALL and keys_of(found["filter"]) is not None:
            selector = found["filter"]
        update_queue(management, step.name, step.address, selector, step.exclusive)
        if found["paused"] == "true":
            management.call(f"queue.{step.name}", "resume")


def update_queue(management: Management, name: str, address: str, selector: str, exclusive: bool) -> None:
    """Always with everything: the broker clears the filter of a queue whose update does not name one, and takes a
    JSON null for the filter "null", which nothing matches."""
    management.call("broker", "updateQueue", json.dumps(_queue_json(name, address, selector, exclusive)))


def _queue_json(name: str, address: str, selector: str, exclusive: bool) -> dict[str, Any]:
    filtered = {"filter-string": selector} if selector else {}
    return {
        "name": name,
        "address": address,
        "routing-type": MULTICAST,
        "durable": True,
        "exclusive": exclusive,
    } | filtered


def _change_catch_all(management: Management, dla: str, *, add: str = "", remove: str = "") -> None:
    name = dead_letter_queue(UNKNOWN)
    found = find(management, "listQueues", name)
    if found is None:
        raise ManagementFailed(f"queue {name} is missing: the base topology comes first")
    keys = set(keys_of(found["filter"]) or ())
    wanted = (keys | {add} if add else keys) - {remove}
    update_queue(management, name, dla, catch_all_filter(wanted), exclusive=False)


# -- removing -------------------------------------------------------------------------------------------------------


def remove_setting(management: Management, key: str, dla: str) -> None:
    """Removes the subscription queue, then the dead-letter queue, in the reverse order of their making.

    Raises ManagementFailed while one of them holds messages or feeds a consumer. Address and policy stay: they belong
    to the destination, which other settings and publishers use.
    """
    for queue in (key, dead_letter_queue(key)):
        found = find(management, "listQueues", queue)
        if found is not None and (found["messageCount"] != "0" or found["consumerCount"] != "0"):
            raise ManagementFailed(
                f"queue {queue} holds {found['messageCount']} messages and feeds {found['consumerCount']} consumers"
            )
    _destroy(management, key)
    unknown = find(management, "listQueues", dead_letter_queue(UNKNOWN))
    if unknown is not None and key in (keys_of(unknown["filter"]) or ()):
        _change_catch_all(management, dla, remove=key)
    _destroy(management, dead_letter_queue(key))


def _destroy(management: Management, queue: str) -> None:
    if find(management, "listQueues", queue) is not None:
        management.call("broker", "destroyQueue", queue)
