"""What must be on the broker for the settings to work. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from contract.properties import BIN, FEED, ORIG_QUEUE, UNKNOWN, dead_letter_queue
from contract.redelivery import RedeliveryPolicy

MULTICAST = "MULTICAST"
# What no message matches: the bin takes only what is moved into it by name.
NOTHING = "1 = 0"
# Address and queue of what the broker cannot turn into AMQP. Not under the prefix of the settings' queues.
UNREADABLE = "MA.unreadable"


@dataclass(frozen=True, slots=True)
class Address:
    """A MULTICAST address."""

    name: str


@dataclass(frozen=True, slots=True)
class Queue:
    """A durable queue. `filter` empty = takes everything; `exclusive` = feeds one consumer at a time."""

    name: str
    address: str
    filter: str = ""
    exclusive: bool = False


@dataclass(frozen=True, slots=True)
class Policy:
    """Settings of one address, by the names of the broker's JSON."""

    address: str
    settings: Mapping[str, Any] = field(hash=False)


@dataclass(frozen=True, slots=True)
class LeftOut:
    """`key` has a dead-letter queue of its own, so the catch-all queue must not take its letters too."""

    key: str
    address: str


Step = Address | Queue | Policy | LeftOut


def base_topology(dla: str) -> list[Step]:
    """The dead-letter address with its feed, the catch-all and the bin. The feed first: with it no letter is lost.

    Before them a place for letters that the broker itself cannot turn into AMQP (a Core StreamMessage with bytes in it,
    a malformed body): it takes them from whoever consumes or browses and sends them to the dead-letter address of their
    address. Were that the same one again, a letter in the feed would make new ones without end.
    """
    return [
        Address(UNREADABLE),
        Queue(UNREADABLE, UNREADABLE),
        Policy(dla, DEAD_LETTER_SETTINGS),
        Address(dla),
        Queue(dead_letter_queue(FEED), dla),
        Queue(dead_letter_queue(UNKNOWN), dla, CATCH_ALL),
        Queue(dead_letter_queue(BIN), dla, NOTHING),
    ]


# A filter that stands for "of whatever keys": LeftOut steps keep it.
CATCH_ALL = "*"

# Letters page early: a filtered move on 1,000,000 unpaged ones runs the broker out of its heap. They never die again.
DEAD_LETTER_SETTINGS: Mapping[str, Any] = {
    "deadLetterAddress": UNREADABLE,
    "maxDeliveryAttempts": -1,
    "redeliveryDelay": 0,
    "addressFullMessagePolicy": "PAGE",
    "maxSizeBytes": 20_000_000,
    "pageSizeBytes": 2_000_000,
    "autoCreateQueues": False,
    "autoDeleteQueues": False,
    "autoCreateAddresses": False,
    "autoDeleteAddresses": False,
}


def setting_topology(
    key: str,
    destination: str,
    policy: RedeliveryPolicy,
    exclusive: bool,
    dla: str,
    *,
    expiry_ms: int | None = None,
) -> list[Step]:
    """What a setting needs, in the order that loses nothing: its dead-letter queue is there before its first message
    can die, and the subscription comes last. `exclusive` for ANY settings: the fence between two servers."""
    return [
        Queue(dead_letter_queue(key), dla, f"{ORIG_QUEUE} = '{key}'"),
        LeftOut(key, dla),
        Policy(destination, address_settings(policy, dla, expiry_ms)),
        Address(destination),
        Queue(key, destination, exclusive=exclusive),
    ]


def address_settings(policy: RedeliveryPolicy, dla: str, expiry_ms: int | None) -> dict[str, Any]:
    """All of them, so that nothing is left to a default: a message without a dead-letter address would be deleted
    after its last attempt. What expires goes to the dead letters as well."""
    return {
        "deadLetterAddress": dla,
        "maxDeliveryAttempts": policy.max_attempts,
        "redeliveryDelay": policy.delay,
        "redeliveryMultiplier": policy.multiplier,
        "maxRedeliveryDelay": policy.longest,
        "redeliveryCollisionAvoidanceFactor": policy.collision_avoidance,
        "expiryAddress": dla,
        "expiryDelay": -1 if expiry_ms is None else expiry_ms,
        "addressFullMessagePolicy": "PAGE",
        "autoCreateQueues": False,
        "autoDeleteQueues": False,
        "autoCreateAddresses": False,
        "autoDeleteAddresses": False,
    }
