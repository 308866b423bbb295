"""Messages that the broker cannot turn into AMQP, and what lies in a queue of the broker whatever it
counts."""

import base64
import json

from broker.amqp.consumer import AmqpConsumer
from tests.broker.houses import eventually
from tests.broker.jms import jms_messages
from tests.dlq.stage import Seen, Stage


def send_undeliverable(stage: Stage, key: str, number: int = 1) -> None:
    account = stage.service.publisher
    body = base64.b64encode(jms_messages.stream_body_with_bytes()).decode()
    for _ in range(number):
        arguments = ({"s": "x"}, jms_messages.STREAM, body, True, account.user, account.password)
        stage.management.call(f"queue.{key}", "sendMessage", *arguments)


def attach(stage: Stage, key: str) -> AmqpConsumer:
    """As a KMA does."""
    consumer = AmqpConsumer(stage.account("kma", "amqp"), f"t.{key}", key, Seen(), 50)
    consumer.start()
    return consumer


def in_queue(stage: Stage, name: str) -> list[int]:
    """The ids of what lies there, whatever the broker counts."""
    listed = json.loads(stage.management.call(f"queue.{name}", "listMessagesAsJSON", ""))
    return [int(message["messageID"]) for message in listed]


def until(stage: Stage, name: str, number: int) -> None:
    eventually(lambda: len(in_queue(stage, name)) == number, 60)


def walk(stage: Stage, key: str) -> None:
    list(stage.queues.browser.walk("MA.DLA", f"DLQ.{key}"))
