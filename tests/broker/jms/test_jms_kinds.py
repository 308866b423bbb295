"""Messages of JMS producers, as an agent and as a page see them."""

import time

import pytest

from broker.amqp.codec import encode
from broker.amqp.consumer import AmqpConsumer
from broker.amqp.python_values import decode_natural
from broker.management.desired_topology import UNREADABLE
from broker.management.queues import queue_figures
from broker.port import BodyKind, Settle
from contract.typed import Typed
from tests.broker.houses import A_MOMENT, DLA, Got, Owner, RealHouse, eventually
from tests.broker.jms import jms_messages, jms_producer

PROTOCOLS = pytest.mark.parametrize("protocol", ["CORE", "AMQP"])


def sent(real: RealHouse, protocol: str, *content: str) -> Got:
    setting = real.setting()
    jms_producer.send_by_command(real.service, protocol, setting.address, *content)
    consumer, owner = real.consume(setting)
    got = owner.got()
    consumer.settle([(got.tag, Settle.ACCEPT)])
    return got


@PROTOCOLS
def test_a_text_message_is_text_and_its_properties_keep_their_types(real: RealHouse, protocol: str) -> None:
    message = sent(real, protocol, "--message", "Привет", "--properties", jms_messages.PROPERTIES).message
    assert message.body == Typed("string", "Привет")
    assert {name: message.properties[name] for name in "bhildfts"} == {
        "b": Typed("byte", 3),
        "h": Typed("short", -3),
        "i": Typed("int", 7),
        "l": Typed("long", 9000000000),
        "d": Typed("double", 0.5),
        "f": Typed("float", 1.5),
        "t": Typed("boolean", True),
        "s": Typed("string", "текст"),
    }
    assert message.message_id is not None and str(message.message_id.value).startswith("ID:")
    seen = decode_natural(encode(message))
    assert (seen.body, seen.jms_kind, seen.properties["i"]) == ("Привет", 5, 7)
    assert seen.message_id == message.message_id.value


@PROTOCOLS
def test_a_bytes_message_is_bytes(real: RealHouse, protocol: str) -> None:
    message = sent(real, protocol, "--message-size", "300000").message
    assert (message.body_kind, message.body.type, len(message.body.value)) == (
        BodyKind.DATA,
        "binary",
        300_000,
    )
    seen = decode_natural(encode(message))
    assert isinstance(seen.body, bytes)
    assert seen.jms_kind == 3


@PROTOCOLS
def test_an_object_message_is_bytes_that_nobody_deserialises(real: RealHouse, protocol: str) -> None:
    message = sent(real, protocol, "--object-size", "500").message
    assert message.content_type == "application/x-java-serialized-object"
    seen = decode_natural(encode(message))
    assert seen.body.startswith(b"\xac\xed\x00\x05")  # Java's serialisation begins so
    assert seen.jms_kind == 1


def sent_core(real: RealHouse, kind: int, body: bytes) -> Got:
    setting = real.setting()
    jms_messages.send_core(real, setting, kind, body)
    consumer, owner = real.consume(setting)
    got = owner.got()
    consumer.settle([(got.tag, Settle.ACCEPT)])
    return got


def test_a_map_message_is_a_dict_with_typed_values(real: RealHouse) -> None:
    message = sent_core(real, jms_messages.MAP, jms_messages.map_body()).message
    seen = decode_natural(encode(message))
    assert seen.jms_kind == 2
    assert seen.body == {
        "flag": True,
        "byte": -3,
        "bytes": b"\x00\x01\xff",
        "short": -3,
        "int": 7,
        "long": 2**40,
        "float": 1.5,
        "double": 0.1,
        "text": "текст",
        "char": "Ж",
    }
    types = {name.value: value.type for name, value in message.body.value}
    assert (types["byte"], types["short"], types["float"], types["char"]) == (
        "byte",
        "short",
        "float",
        "char",
    )


def test_a_stream_message_is_a_list_with_typed_values(real: RealHouse) -> None:
    message = sent_core(real, jms_messages.STREAM, jms_messages.stream_body()).message
    seen = decode_natural(encode(message))
    assert (seen.body, seen.jms_kind) == ([True, 7, 2**40, 0.1, "текст"], 4)
    assert [value.type for value in message.body.value] == ["boolean", "int", "long", "double", "string"]


def test_what_the_broker_cannot_turn_into_amqp_ends_in_a_place_of_its_own_and_stops_nobody(
    real: RealHouse,
) -> None:
    setting = real.setting()
    consumer, owner = real.consume(setting)
    before = queue_figures(real.management, UNREADABLE, UNREADABLE).added
    jms_messages.send_core(real, setting, jms_messages.STREAM, jms_messages.stream_body_with_bytes())
    real.publish(setting.address, "next")
    assert owner.got().text == "next"
    # The broker made a letter of it. Who reads the feed does not get it either, and no new letters come of
    # that.
    follower = Owner()
    feed = AmqpConsumer(real.ops, DLA, "DLQ.feed", follower, 100_000)
    feed.start()
    follower.wait("opened")
    eventually(lambda: queue_figures(real.management, UNREADABLE, UNREADABLE).added > before)
    time.sleep(A_MOMENT)
    settled = queue_figures(real.management, UNREADABLE, UNREADABLE).added
    time.sleep(A_MOMENT)
    feed.stop()
    assert queue_figures(real.management, UNREADABLE, UNREADABLE).added == settled
    assert queue_figures(real.management, setting.dead, DLA).added == 1
    consumer.stop()
