"""A probe for lost credit whose answer comes late, together with a message, or never: on the real broker."""

import logging
import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest

from broker.amqp.consumer import AmqpConsumer
from broker.port import Settle
from tests.broker.amqp_proxy import AmqpProxy, drains, flow_of
from tests.broker.houses import A_MOMENT, Owner, RealHouse, Setting, eventually


@pytest.fixture
def proxy(real: RealHouse) -> Iterator[AmqpProxy]:
    proxy = AmqpProxy(real.kma.url)
    yield proxy
    proxy.close()


@pytest.fixture
def consumers() -> Iterator[list[AmqpConsumer]]:
    begun: list[AmqpConsumer] = []
    yield begun
    for consumer in begun:
        consumer.stop()


def consume(
    real: RealHouse, proxy: AmqpProxy, setting: Setting, window: int, begun: list[AmqpConsumer]
) -> tuple[AmqpConsumer, Owner]:
    owner = Owner()
    consumer = AmqpConsumer(replace(real.kma, url=proxy.url), setting.address, setting.key, owner, window)
    begun.append(consumer)
    consumer.start()
    owner.wait("opened")
    return consumer, owner


def test_a_message_that_comes_during_a_probe_is_no_sign_of_lost_credit(
    real: RealHouse, proxy: AmqpProxy, consumers: list[AmqpConsumer], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, logger="broker.amqp.consumer")
    setting = real.setting()
    held, go_on = threading.Event(), threading.Event()

    def hold_first_drain(frame: bytes) -> bool:
        if not held.is_set() and drains(frame):
            held.set()
            go_on.wait(20)
        return True

    proxy.to_broker = hold_first_drain
    consumer, owner = consume(real, proxy, setting, 1, consumers)
    assert held.wait(20), "a quiet link is probed"
    real.publish(setting.address, "0")
    first = owner.got()
    answered = threading.Event()

    def see_answer(frame: bytes) -> bool:
        if flow_of(frame) is not None:
            answered.set()
        return True

    proxy.to_client = see_answer
    go_on.set()
    assert answered.wait(20), "the broker gives back what it did not use"
    consumer.settle([(first.tag, Settle.ACCEPT)])
    eventually(lambda: real.figures(setting).messages == 0)
    real.publish(setting.address, "1", "2", "3")
    for number in ("1", "2", "3"):
        got = owner.got()
        assert got.text == number
        owner.nothing(A_MOMENT)  # the window is one
        consumer.settle([(got.tag, Settle.ACCEPT)])
    assert not [
        record.getMessage() for record in caplog.records if "could not deliver" in record.getMessage()
    ]


@pytest.mark.parametrize("in_hand", [0, 1])
def test_a_drain_that_is_never_answered_ends_the_link_without_loss_or_repeats(
    real: RealHouse,
    proxy: AmqpProxy,
    consumers: list[AmqpConsumer],
    in_hand: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("broker.amqp.credit.DRAIN_SECONDS", 1.0, raising=False)
    setting = real.setting()
    silent, drained, swallowed = threading.Event(), threading.Event(), threading.Event()

    def see_drain(frame: bytes) -> bool:
        if silent.is_set() and drains(frame):
            drained.set()
        return True

    def swallow_answer(frame: bytes) -> bool:
        if not drained.is_set() or proxy.connections > 1 or flow_of(frame) is None:
            return True
        swallowed.set()
        return False

    proxy.to_broker, proxy.to_client = see_drain, swallow_answer
    consumer, owner = consume(real, proxy, setting, 2, consumers)
    real.publish(setting.address, *[f"held {n}" for n in range(in_hand)])
    held = [owner.got() for _ in range(in_hand)]
    silent.set()
    assert swallowed.wait(20), "it is probed, and the broker has answered"
    real.publish(setting.address, *[f"late {n}" for n in range(6)])
    if held:
        owner.nothing(3.0)  # what is in hand is not given to anybody else
        assert proxy.connections == 1
        consumer.settle([(got.tag, Settle.ACCEPT) for got in held])
    owner.wait("opened", 20)
    texts = []
    for _ in range(6):
        got = owner.got()
        texts.append(got.text)
        assert got.count == 0
        consumer.settle([(got.tag, Settle.ACCEPT)])
    assert texts == [f"late {n}" for n in range(6)]
    owner.nothing()
    eventually(lambda: real.figures(setting).messages == 0)
    assert proxy.connections == 2
