"""Topology wanted against found, and the steps in between.

Everything is a `Step`: an address, a queue, or an address's policy. Steps are idempotent; `apply` reads each
one back, because the broker's answers do not tell what it did (createQueue of an existing queue echoes the
filter it was asked for and changes nothing).
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from broker.management.desired_topology import MULTICAST, Address, Policy, Queue, Step
from broker.management.queues import find
from broker.management.waiting_messages import first_waiting
from broker.port import Management, ManagementFailed
from contract.names import FEED, ahead_queue, dead_letter_queue, hold_queue

ALREADY_THERE = ("AMQ229204", "AMQ229205")


@dataclass(frozen=True, slots=True)
class Difference:
    """`what` is for people: `queue orders: filter`. `found` empty = it is not there."""

    what: str
    wanted: str
    found: str

    def __str__(self) -> str:
        return f"{self.what}: expected {self.wanted}, found {self.found or 'nothing'}"


# -- wanted against found ------------------------------------------------------------------------------------


def differences(management: Management, steps: Iterable[Step]) -> list[Difference]:
    """Where the broker is not as the steps want it. Changes nothing."""
    return [difference for step in steps for difference in _differences(management, step)]


def apply(management: Management, steps: Sequence[Step]) -> list[Difference]:
    """Makes the broker as the steps want it, one after the other, and returns what it changed.

    Raises ManagementFailed with the difference that stayed, BrokerUnavailable, AccessRefused. Running it
    again is harmless; what came before the failed step is done.
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
    return _policy_differences(management, step)


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
        "paused": str(step.paused).lower(),
    }
    return [
        Difference(f"queue {step.name}: {name}", value, found[name])
        for name, value in wanted.items()
        if found[name] != value
    ]


def _policy_differences(management: Management, step: Policy) -> list[Difference]:
    found = found_policy(management, step.address)
    return [
        Difference(f"address {step.address}: {name}", str(value), str(found.get(name, "")))
        for name, value in step.settings.items()
        if found.get(name) != value
    ]


def found_policy(management: Management, address: str) -> dict[str, Any]:
    """The settings in effect at an address, by the names of the broker's JSON: its own, and where it has none
    those of the wildcards. One that was never set anywhere may be missing."""
    return dict(json.loads(management.call("broker", "getAddressSettingsAsJSON", address)))


# -- writing -------------------------------------------------------------------------------------------------


def _write(management: Management, step: Step) -> None:
    if isinstance(step, Address):
        _create_address(management, step)
    elif isinstance(step, Queue):
        _write_queue(management, step)
    else:
        management.call("broker", "addAddressSettings", step.address, json.dumps(dict(step.settings)))


def _create_address(management: Management, step: Address) -> None:
    try:
        management.call("broker", "createAddress", step.name, MULTICAST)
    except ManagementFailed as error:
        if not str(error).startswith(ALREADY_THERE):
            raise


def _write_queue(management: Management, step: Queue) -> None:
    found = find(management, "listQueues", step.name)
    if found is None:
        wanted = _queue_json(step.name, step.address, step.filter, step.exclusive) | {
            "auto-create-address": False
        }
        management.call("broker", "createQueue", json.dumps(wanted), True)
        if step.paused:
            management.call(f"queue.{step.name}", "pause", True)
    elif found["address"] == step.address:
        update_queue(management, step.name, step.address, step.filter, step.exclusive)
        if found["paused"] != str(step.paused).lower():
            # A pause is written to the journal: it outlives the broker.
            management.call(f"queue.{step.name}", *(("pause", True) if step.paused else ("resume",)))


def update_queue(management: Management, name: str, address: str, selector: str, exclusive: bool) -> None:
    """Always with everything: the broker clears the filter of a queue whose update does not name one, and
    takes a JSON null for the filter "null", which nothing matches. A filter changed here is forgotten at its
    next restart."""
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


# -- removing ------------------------------------------------------------------------------------------------


def remove_setting(management: Management, key: str, *, subscription: bool = True) -> None:
    """Removes the subscription queue, then the dead-letter queue, in the reverse order of their making, and
    what held messages back. `subscription` False: the queue of that name is somebody else's and stays.

    Raises ManagementFailed while one of them holds messages or feeds a consumer, and while the feed holds
    letters: one of this setting, seen after its queue is gone, would be taken for a letter that no queue
    took. Address and policy stay: they belong to the destination, which other settings and publishers use.
    """
    feed = find(management, "listQueues", dead_letter_queue(FEED))
    if feed is not None and (letters := _held(management, feed)):
        raise ManagementFailed(f"queue {feed['name']} still holds {letters} messages to be indexed")
    ours = [*([key] if subscription else []), ahead_queue(key), dead_letter_queue(key), hold_queue(key)]
    for queue in ours:
        found = find(management, "listQueues", queue)
        if found is None:
            continue
        held, consumers = _held(management, found), found["consumerCount"]
        if held or consumers != "0":
            raise ManagementFailed(f"queue {queue} holds {held} messages and has {consumers} consumers")
    for queue in ours:
        _destroy(management, queue)


def _held(management: Management, queue: Mapping[str, str]) -> int:
    """The broker may count fewer than there are, even below 0 (after a purge of a paged queue, or of messages
    that it cannot turn into AMQP): where it counts none, a look says whether there are any."""
    counted = int(queue["messageCount"])
    return counted if counted > 0 else len(first_waiting(management, queue["name"]))


def _destroy(management: Management, queue: str) -> None:
    if find(management, "listQueues", queue) is not None:
        management.call("broker", "destroyQueue", queue)
