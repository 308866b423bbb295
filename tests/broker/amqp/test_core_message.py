"""Tunneled Core messages with values that AMQP cannot hold: whoever reads them goes on. No broker is
asked."""

import struct

import pytest

from broker.amqp.codec import decode, encode
from broker.amqp.core_message import from_core
from broker.port import Message
from contract.names import BROKER_ID, BYTES_IN_STREAM, NOT_CONVERTIBLE, ORIG_MESSAGE_ID, ORIG_QUEUE
from contract.typed import Typed
from dlq.index.undelivered import death_of
from dlq.models import DeadLetter

TEXT = 3


def text(value: str) -> bytes:
    encoded = value.encode("utf-16-le", "surrogatepass")
    return struct.pack(">i", len(encoded)) + encoded


def core(properties: dict[str, str], *, priority: int = 4, created_at: int = 1_700_000_000_000) -> bytes:
    """A small Core text message, as the broker tunnels it."""
    body = b"\x01" + text("hello")
    told = {ORIG_QUEUE: b"\x0a" + text("orders"), ORIG_MESSAGE_ID: b"\x07" + struct.pack(">q", 77)}
    told |= {name: b"\x0a" + text(value) for name, value in properties.items()}
    head = struct.pack(">q", 5) + b"\x01" + text("demo.orders") + b"\x00"
    head += struct.pack(">b?qqb", TEXT, True, 0, created_at, priority)
    head += (
        b"\x01" + struct.pack(">i", len(told)) + b"".join(text(name) + value for name, value in told.items())
    )
    inner = struct.pack(">i", 8 + len(body) - 8 + 13) + body + head
    section = struct.pack(">i", len(inner)) + inner
    return b"\x00\x53\x75\xb0" + struct.pack(">i", len(section)) + section


@pytest.mark.parametrize(
    ("properties", "more"),
    [
        ({}, {}),
        ({"JMSCorrelationID": "ID:AMQP_ULONG:-1"}, {}),
        ({"JMSCorrelationID": f"ID:AMQP_ULONG:{2**64}"}, {}),
        ({"NATIVE_MESSAGE_ID": "ID:AMQP_ULONG:-1"}, {}),
        ({"NATIVE_MESSAGE_ID": "ID:AMQP_BINARY:zz"}, {}),
        ({"bad": "\ud800"}, {}),
        ({}, {"priority": -1}),
        ({}, {"created_at": 2**62}),
    ],
)
def test_no_value_of_a_producer_stops_who_reads(properties: dict[str, str], more: dict[str, int]) -> None:
    message = decode(from_core(core(properties, **more)))
    assert (
        message.properties[ORIG_QUEUE].value == "orders" and message.properties[ORIG_MESSAGE_ID].value == 77
    )
    assert "hello" in str(message.body.value) or b"h\x00e\x00l" in message.body.value


def row() -> DeadLetter:
    return DeadLetter(node_id="n", orig_queue="orders", orig_message_id=77, queue="DLQ.orders")


def test_a_producer_cannot_say_that_its_message_was_undeliverable() -> None:
    forged = {f"JMS_AMQP_MA_{NOT_CONVERTIBLE}": BYTES_IN_STREAM, f"JMS_AMQP_MA_{BROKER_ID}": "abc"}
    assert death_of(row(), decode(from_core(core(forged)))) is None


@pytest.mark.parametrize("letter_id", [Typed("string", "abc"), Typed("null", None), Typed("ulong", 2**63)])
def test_nonsense_about_an_undeliverable_message_is_left_aside(letter_id: Typed) -> None:
    said = {NOT_CONVERTIBLE: Typed("string", BYTES_IN_STREAM), BROKER_ID: letter_id}
    message = decode(encode(Message(body=Typed("string", "x"), annotations=said)))
    assert death_of(row(), message) is None
