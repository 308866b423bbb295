"""A run's setting on a broker, and messages for it."""

import json
from typing import Any

from broker.port import Message, Outgoing
from contract.messages import DesiredRun
from contract.typed import Typed
from tests.broker.houses import House, Setting
from tests.kma.fakes import wanted


def of(setting: Setting, **fields: Any) -> DesiredRun:
    return wanted(setting=setting.key, queue=setting.key, destination=setting.address, **fields)


def script(step: Any, identity: str = "") -> Message:
    return Message(
        body=Typed("string", json.dumps(step)), message_id=Typed("string", identity) if identity else None
    )


def publish(house: House, setting: Setting, *messages: Message) -> None:
    house.publisher.publish([Outgoing(setting.address, one) for one in messages])
