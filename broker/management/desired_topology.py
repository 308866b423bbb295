"""What must be on the broker for the settings to work. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from contract.names import (
    BIN,
    FEED,
    HOLD,
    ORIG_QUEUE,
    UNKNOWN,
    ahead_queue,
    dead_letter_queue,
    hold_queue,
)
from contract.redelivery import RedeliveryPolicy

MULTICAST = "MULTICAST"
# What no message matches: the bin takes only what is moved into it by name.
NOTHING = "1 = 0"
# What somebody sent to the dead-letter address itself. Letters of queues that are no setting's are in the
# feed alone, and whoever follows it sends them here: a filter that names the settings would have to be
# changed with each of them, and the broker forgets a changed filter when it restarts (it writes the one that
# the queue was made with).
WITHOUT_ORIGIN = f"{ORIG_QUEUE} IS NULL"
# Address and queue of what the broker cannot turn into AMQP. Not under the prefix of the settings' queues.
UNREADABLE = "MA.unreadable"


@dataclass(frozen=True, slots=True)
class Address:
    """A MULTICAST address."""

    name: str


@dataclass(frozen=True, slots=True)
class Queue:
    """A durable queue. `filter` empty = takes everything; `exclusive` = feeds one consumer at a time;
    `paused` = takes messages and delivers none."""

    name: str
    address: str
    filter: str = ""
    exclusive: bool = False
    paused: bool = False


@dataclass(frozen=True, slots=True)
class Policy:
    """Settings of one address, by the names of the broker's JSON."""

    address: str
    settings: Mapping[str, Any] = field(hash=False)


Step = Address | Queue | Policy


def base_topology(dla: str) -> list[Step]:
    """The dead-letter address with its feed, the queue for the unknown, and the bin. The feed first: with it
    no letter is lost.

    Before them a place for letters that the broker itself cannot turn into AMQP (a Core StreamMessage with
    bytes in it, a malformed body): it takes them from whoever consumes or browses and sends them to the
    dead-letter address of their address. Were that the same one again, a letter in the feed would make new
    ones without end.
    """
    return [
        Address(UNREADABLE),
        Queue(UNREADABLE, UNREADABLE),
        Policy(dla, DEAD_LETTER_SETTINGS),
        Address(dla),
        Queue(dead_letter_queue(FEED), dla),
        Queue(dead_letter_queue(UNKNOWN), dla, WITHOUT_ORIGIN),
        Queue(dead_letter_queue(BIN), dla, NOTHING),
    ]


# Letters page early: a filtered move on 1,000,000 unpaged ones runs the broker out of its heap. They never
# die again.
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
    held: bool = False,
) -> list[Step]:
    """What a setting needs, in the order that loses nothing: its dead-letter queue is there before its first
    message can die, and the subscription comes last. `exclusive`: one consumer is fed at a time, the fence
    between two servers of an ANY setting, and the order of an ordered one.

    `held`: the subscription gathers and delivers nothing, and a queue beside it, which takes only what is
    moved into it, is there to be taken from. What dies in either one has the same dead-letter queue: its
    filter names both from the beginning, for the broker forgets a filter that was changed later when it
    restarts."""
    ahead = ahead_queue(key)
    return [
        Queue(dead_letter_queue(key), dla, f"{ORIG_QUEUE} = '{key}' OR {ORIG_QUEUE} = '{ahead}'"),
        destination_policy(destination, policy, dla, expiry_ms),
        Address(destination),
        *([Queue(ahead, destination, NOTHING, exclusive)] if held else []),
        Queue(key, destination, exclusive=exclusive, paused=held),
    ]


def destination_policy(destination: str, policy: RedeliveryPolicy, dla: str, expiry_ms: int | None) -> Policy:
    """The step of `setting_topology` that all settings of a destination share."""
    return Policy(destination, address_settings(policy, dla, expiry_ms))


def hold_topology(key: str, dla: str) -> list[Step]:
    """Where messages of a setting are held back. Made when the first one is. Nothing is delivered from there,
    so only an expiry ends it: then the message goes to the dead letters, as it would have from its
    subscription."""
    settings = {**DEAD_LETTER_SETTINGS, "deadLetterAddress": dla, "expiryAddress": dla}
    return [Policy(HOLD, settings), Address(HOLD), Queue(hold_queue(key), HOLD, NOTHING)]


def address_settings(policy: RedeliveryPolicy, dla: str, expiry_ms: int | None) -> dict[str, Any]:
    """All of them, so that nothing is left to a default: a message without a dead-letter address would be
    deleted after its last attempt. What expires goes to the dead letters as well."""
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
