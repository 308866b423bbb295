"""A dead-letter queue that is not the MA's, with letters of the settings of a test in it."""

import json
import uuid

from broker.port import Message, Settle
from contract.typed import Typed
from tests.dlq.stage import Stage


def foreign_queue(stage: Stage, *keys: str) -> str:
    """A queue of an address of its own, as other houses have it; what dies in these settings goes there."""
    name = f"old-{uuid.uuid4().hex[:8]}"
    stage.management.call("broker", "createAddress", name, "ANYCAST")
    wanted = {"name": name, "address": name, "routing-type": "ANYCAST", "durable": True}
    stage.management.call("broker", "createQueue", json.dumps(wanted), False)
    for key in keys:
        policy = {"deadLetterAddress": name, "maxDeliveryAttempts": 1, "autoCreateQueues": False}
        stage.management.call("broker", "addAddressSettings", f"t.{key}", json.dumps(policy))
    return name


def kill_abroad(stage: Stage, key: str, count: int, first: int = 0) -> None:
    bodies = [f"{key}-{n}" for n in range(first, first + count)]
    stage.publish(
        f"t.{key}",
        *[Message(body=Typed("string", body), message_id=Typed("string", body)) for body in bodies],
    )
    stage.consume(key, count, Settle.REJECT)
