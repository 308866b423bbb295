"""The key that a KMA computes before a message dies is the key of its letter, whoever sent it; and after its
return."""

import json
from datetime import UTC, datetime

import pytest

from broker.amqp.codec import decode
from broker.port import BodyKind, Message, Outgoing, Settle
from contract.message_key import MessageKey, message_key
from contract.names import dead_letter_queue
from contract.typed import Typed
from dlq.dead_letters.rules.parser import origin_of
from dlq.models import DeadLetter
from tests.broker.jms import jms_producer
from tests.dlq.stage import Stage

PROPERTIES = {
    "string": Typed("string", "Привет"), "symbol": Typed("symbol", "sym"), "int": Typed("int", -3),
    "long": Typed("long", 2**40), "short": Typed("short", 4), "byte": Typed("byte", -1),
    "ubyte": Typed("ubyte", 255),
    "ushort": Typed("ushort", 65535), "uint": Typed("uint", 2**32 - 1), "ulong": Typed("ulong", 2**64 - 1),
    "float": Typed("float", 0.5), "double": Typed("double", 0.25), "boolean": Typed("boolean", True),
    "timestamp": Typed("timestamp", 1_700_000_000_000), "char": Typed("char", "x"), "null": Typed("null",
    None),
    "uuid": Typed("uuid", "12345678-1234-5678-1234-567812345678"), "binary": Typed("binary", b"\0\xff"),
    "decimal": Typed("decimal64", b"12345678"),
}  # fmt: skip
AMQP = {
    "text id": Message(body=Typed("string", "hi"), message_id=Typed("string", "P-1"), properties=PROPERTIES),
    "uuid id": Message(
        body=Typed("binary", b"\0\1"),
        body_kind=BodyKind.DATA,
        message_id=Typed("uuid", "12345678-1234-5678-1234-567812345678"),
    ),
    "number id": Message(body=Typed("map", ((Typed("string", "a"), Typed("int", 1)),)),
    message_id=Typed("ulong", 7)),
    "binary id": Message(body=Typed("string", "x"), message_id=Typed("binary", b"\0\1\2")),
    "no id": Message(
        body=Typed("string", "x"), properties=PROPERTIES, created_at=datetime(2026, 3, 1, tzinfo=UTC),
        priority=7,
        correlation_id=Typed("ulong", 9), reply_to="answers", content_type="text/plain", subject="s",
    ),
    "sequence": Message(body=Typed("list", (Typed("int", 1), Typed("string", "b"))),
    body_kind=BodyKind.SEQUENCE),
    "large": Message(body=Typed("string", "x" * 2_000_000)),
    "no body": Message(),
    "empty": Message(body=Typed("binary", b""), body_kind=BodyKind.DATA),
}  # fmt: skip
STOMP = {
    "text": Message(body=Typed("string", "hi\nthere"), properties={"customer": Typed("string", "c-1")}),
    "bytes": Message(body=Typed("binary", b"\0\xff"), body_kind=BodyKind.DATA),
    "large text": Message(body=Typed("string", "y" * 300_000)),
}
CORE = {
    "text": ["--message", "hi"],
    "bytes": ["--message-size", "200"],
    "object": ["--object-size", "100"],
    "large text": ["--text-size", "300000"],
    "properties": [
        "--message", "hi", "--properties",
        json.dumps([{"type": "int", "key": "i", "value": "7"}, {"type": "double", "key": "d",
        "value": "0.5"}]),
    ],
}  # fmt: skip


def key_of(encoded: bytes) -> MessageKey:
    message = decode(encoded)
    return message_key(message.message_id, message.body_section, message.properties)


def dies_and_returns(stage: Stage, key: str) -> DeadLetter:
    """The row of the one message that waits in the subscription, after all ways led to the same key."""
    (delivered,) = stage.consume(key, 1, Settle.REJECT)
    stage.follow(lambda: DeadLetter.objects.filter(setting_key=key).exists())
    row = DeadLetter.objects.get(setting_key=key)
    assert (row.message_key, row.message_key_weak) == (key_of(delivered).text, key_of(delivered).weak)
    assert decode(bytes(row.encoded)).body.type == decode(delivered).body.type
    assert stage.queues.move_ids(dead_letter_queue(key), [row.orig_message_id], key) == 1
    (returned,) = stage.consume(key, 1, Settle.ACCEPT)
    assert key_of(returned) == key_of(delivered)
    origin = origin_of(decode(returned))
    assert origin.queue == f"DLQ.{key}"
    assert origin.message_id is not None and origin.message_id > row.orig_message_id
    return row


@pytest.mark.django_db
@pytest.mark.parametrize("name", AMQP)
def test_of_an_amqp_producer(stage: Stage, name: str) -> None:
    key = stage.key()
    stage.publish(f"t.{key}", AMQP[name])
    row = dies_and_returns(stage, key)
    assert row.message_key_weak == (AMQP[name].message_id is None)
    if AMQP[name].properties:
        found = {item["name"]: (item["type"], item["value"]) for item in row.properties}
        assert found["ulong"] == ("ulong", 2**64 - 1) and found["timestamp"][0] == "timestamp"
        assert set(found) == set(PROPERTIES)


@pytest.mark.django_db
@pytest.mark.parametrize("name", STOMP)
def test_of_a_stomp_producer_that_gives_no_id(stage: Stage, name: str) -> None:
    key = stage.key()
    stage.stomp.publish([Outgoing(f"t.{key}", STOMP[name])])
    assert dies_and_returns(stage, key).message_key_weak


@pytest.mark.django_db
@pytest.mark.parametrize("name", CORE)
def test_of_a_jms_producer_over_core(stage: Stage, name: str) -> None:
    key = stage.key()
    jms_producer.send_by_command(stage.service, "CORE", f"t.{key}", *CORE[name])
    row = dies_and_returns(stage, key)
    assert not row.message_key_weak and row.message_key.startswith("ID:")


@pytest.mark.django_db
def test_of_a_jms_producer_over_amqp(stage: Stage) -> None:
    key = stage.key()
    jms_producer.send_by_command(stage.service, "AMQP", f"t.{key}", "--message", "hi")
    assert not dies_and_returns(stage, key).message_key_weak


@pytest.mark.django_db
def test_equal_messages_without_id_share_a_key_in_two_settings(stage: Stage) -> None:
    first, second = stage.key(), stage.key()
    keys: list[str] = []

    def seen() -> bool:
        return DeadLetter.objects.count() >= len(keys)

    for key in (first, second):
        stage.stomp.publish([Outgoing(f"t.{key}", STOMP["text"])])
        stage.consume(key, 1, Settle.REJECT)
        keys.append(key)
        stage.follow(seen)
    assert len(set(DeadLetter.objects.values_list("message_key", flat=True))) == 1
