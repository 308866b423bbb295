"""Messages that the broker cannot turn into AMQP: who consumes beside them goes on, and who looks at them
sees them."""

import time
from dataclasses import replace

import pytest

from broker.amqp.codec import encode
from broker.amqp.consumer import AmqpConsumer
from broker.amqp.python_values import decode_natural
from broker.management.desired_topology import UNREADABLE
from broker.management.queues import queue_figures
from broker.port import BodyKind, Consumer, Message, Outgoing, Settle
from broker.stomp.client import StompPublisher
from contract.typed import Typed
from tests.broker.houses import (
    A_MOMENT,
    DLA,
    PATIENCE,
    Got,
    Owner,
    RealHouse,
    Setting,
    eventually,
    text_message,
)
from tests.broker.jms import jms_messages, jms_producer


def send_undeliverable(real: RealHouse, setting: Setting, number: int = 1) -> None:
    for _ in range(number):
        jms_messages.send_core(real, setting, jms_messages.STREAM, jms_messages.stream_body_with_bytes())


def publish_behind(real: RealHouse, setting: Setting, *texts: str) -> None:
    """With the priority of those that management sends, or they would overtake them."""
    real.publisher.publish([Outgoing(setting.address, text_message(text, priority=0)) for text in texts])


def take(consumer: Consumer, owner: Owner, number: int, timeout: float = PATIENCE) -> list[str]:
    texts = []
    for _ in range(number):
        got = owner.got(timeout)
        texts.append(got.text)
        consumer.settle([(got.tag, Settle.ACCEPT)])
    return texts


@pytest.mark.parametrize(
    ("number", "window", "exclusive"),
    [(1, 1, False), (4, 1, False), (4, 4, False), (40, 4, False), (40, 1, False), (4, 1, True)],
)
def test_a_subscription_goes_on_behind_messages_that_never_come(
    real: RealHouse, number: int, window: int, exclusive: bool
) -> None:
    setting = real.setting(exclusive=exclusive)
    consumer, owner = real.consume(setting, window)
    send_undeliverable(real, setting, number)
    good = [f"good {n}" for n in range(20)]
    publish_behind(real, setting, *good)
    assert take(consumer, owner, 20, timeout=60 + 3 * number) == good
    # It knows now what was lost: what comes next waits for nothing.
    more = [f"more {n}" for n in range(20)]
    publish_behind(real, setting, *more)
    assert take(consumer, owner, 20) == more
    owner.nothing()
    assert queue_figures(real.management, setting.dead, DLA).messages == number


def test_good_messages_between_bad_ones_each_come_once(real: RealHouse) -> None:
    setting = real.setting()
    consumer, owner = real.consume(setting, 1)
    for n in range(6):
        send_undeliverable(real, setting)
        publish_behind(real, setting, f"good {n}")
    assert take(consumer, owner, 6, timeout=60) == [f"good {n}" for n in range(6)]
    owner.nothing(2.5)


def test_a_quiet_subscription_is_never_given_more_than_its_window(real: RealHouse) -> None:
    setting = real.setting()
    consumer, owner = real.consume(setting, 2)
    owner.nothing(3.5)  # some probes long, and between two of them
    real.publish(setting.address, *[str(n) for n in range(10)])
    held = [owner.got(), owner.got()]
    owner.nothing()
    consumer.settle([(got.tag, Settle.ACCEPT) for got in held])
    assert [got.text for got in held] + take(consumer, owner, 8) == [str(n) for n in range(10)]


def test_large_messages_come_whole_to_a_link_that_is_probed_again_and_again(real: RealHouse) -> None:
    setting = real.setting()
    consumer, owner = real.consume(setting, 2)
    for n in range(12):
        real.publish(setting.address, f"{n} " + "x" * 3_000_000)
        got = owner.got()
        assert (got.text.split()[0], len(got.text)) == (str(n), len(f"{n} ") + 3_000_000)
        consumer.settle([(got.tag, Settle.ACCEPT)])
        time.sleep(0.25 * (n % 5))  # so that some come while a probe is under way


def test_a_large_message_that_a_probe_brings_is_not_cut_off(real: RealHouse) -> None:
    """The drain of the probe is answered while the broker still sends it: it waits for credit then."""
    setting = real.setting()
    consumer, owner = real.consume(setting, 1)
    for n in range(8):
        send_undeliverable(real, setting)
        publish_behind(real, setting, f"{n} " + "ж" * 800_000, f"{n} behind")
        got = owner.got()
        assert (got.text.split()[0], len(got.text)) == (str(n), len(f"{n} ") + 800_000)
        consumer.settle([(got.tag, Settle.ACCEPT)])
        assert take(consumer, owner, 1) == [f"{n} behind"]
    owner.nothing()


def test_looking_at_a_queue_takes_nothing_out_of_it(real: RealHouse) -> None:
    setting = real.setting()
    send_undeliverable(real, setting, 2)
    for _ in range(3):
        assert len(real.look(setting.address, setting.key)) == 2
    assert [message.body for message in real.look(setting.address, setting.key)] == 2 * [
        Typed("list", (Typed("binary", b"\x00\xff"),))
    ]
    time.sleep(A_MOMENT)
    assert (real.figures(setting).messages, real.dead(setting)) == (2, [])


def test_who_asks_for_core_messages_gets_them_however_often_the_link_ends(real: RealHouse) -> None:
    setting = real.setting()
    before = queue_figures(real.management, UNREADABLE, UNREADABLE).added
    send_undeliverable(real, setting)
    for _ in range(3):
        got = core_delivery(real, setting, Settle.ACCEPT, keep=True)
        assert decode_natural(encode(got.message)).body == [b"\x00\xff"]
        eventually(lambda: real.figures(setting).delivering == 0)
    assert real.figures(setting).messages == 1
    core_delivery(real, setting, Settle.REJECT)
    (letter,) = real.until_dead(setting, 1)
    assert letter.body == Typed("list", (Typed("binary", b"\x00\xff"),))
    assert real.figures(setting).messages == 0
    assert queue_figures(real.management, UNREADABLE, UNREADABLE).added == before


def core_delivery(real: RealHouse, setting: Setting, settle: Settle, *, keep: bool = False) -> Got:
    owner = Owner()
    consumer = AmqpConsumer(real.kma, setting.address, setting.key, owner, 1, core=True)
    consumer.start()
    got = owner.got()
    if not keep:
        consumer.settle([(got.tag, settle)])
    consumer.stop()
    return got


# -- what the broker can convert is the same either way ------------------------------------------------------


def both_ways(real: RealHouse, setting: Setting) -> tuple[Message, Message]:
    """The same message, converted by the broker and by us."""
    consumer, owner = real.consume(setting, 1)
    theirs = owner.got().message
    consumer.stop()
    eventually(lambda: real.figures(setting).delivering == 0)
    ours = core_delivery(real, setting, Settle.ACCEPT).message
    return without_moment(theirs), without_moment(ours)


def without_moment(message: Message) -> Message:
    """A time to live is what is left of it now."""
    return replace(message, ttl_ms=0, properties=dict(sorted(message.properties.items())))


CONTENTS = [
    ("--message", "Привет \N{SNOWMAN}\N{GRINNING FACE}", "--properties", jms_messages.PROPERTIES),
    ("--message", "", "--non-persistent"),
    ("--message-size", "30"),
    ("--message-size", "300000", "--properties", jms_messages.PROPERTIES),
    ("--object-size", "500"),
    ("--text-size", "400000", "--group", "g1", "--msgttl", "100000"),
]


@pytest.mark.parametrize(
    "content", CONTENTS, ids=["text", "empty", "bytes", "large bytes", "object", "large text"]
)
def test_messages_of_core_clients_are_the_same_either_way(real: RealHouse, content: tuple[str, ...]) -> None:
    setting = real.setting()
    jms_producer.send_by_command(real.service, "CORE", setting.address, *content)
    theirs, ours = both_ways(real, setting)
    assert ours == theirs


@pytest.mark.parametrize("body", [jms_messages.stream_body(), jms_messages.stream_body_of_long_texts(), b""])
def test_streams_are_the_same_either_way(real: RealHouse, body: bytes) -> None:
    setting = real.setting()
    jms_messages.send_core(real, setting, jms_messages.STREAM, body)
    theirs, ours = both_ways(real, setting)
    assert ours == theirs


def test_maps_are_the_same_either_way(real: RealHouse) -> None:
    setting = real.setting()
    jms_messages.send_core(real, setting, jms_messages.MAP, jms_messages.map_body())
    theirs, ours = both_ways(real, setting)
    assert sorted(ours.body.value, key=str) == sorted(theirs.body.value, key=str)
    assert replace(ours, body=theirs.body) == theirs


@pytest.mark.parametrize(
    "body", [Typed("string", "grüße"), Typed("binary", b"\x00\xff")], ids=["text", "bytes"]
)
def test_messages_of_stomp_clients_are_the_same_either_way(real: RealHouse, body: Typed) -> None:
    setting = real.setting()
    publisher = StompPublisher(real.stomp_publishing)
    properties = {"n": Typed("string", "7")}
    kind = BodyKind.VALUE if body.type == "string" else BodyKind.DATA
    publisher.publish([Outgoing(setting.address, Message(body=body, body_kind=kind, properties=properties))])
    publisher.close()
    theirs, ours = both_ways(real, setting)
    assert ours == theirs


def test_a_body_that_is_no_stream_at_all_comes_as_its_bytes(real: RealHouse) -> None:
    setting = real.setting()
    jms_messages.send_core(real, setting, jms_messages.STREAM, b"\x63broken")
    jms_messages.send_core(real, setting, jms_messages.MAP, b"\x01\x00\x00")
    for body in (b"\x63broken", b"\x01\x00\x00"):
        message = core_delivery(real, setting, Settle.ACCEPT).message
        assert (message.body, message.body_kind) == (Typed("binary", body), BodyKind.DATA)
