"""Looking without consuming."""

import pytest
from proton import Link

from broker.amqp.browser import AmqpBrowser
from broker.amqp.connection import DELIVERY, AmqpConnection
from broker.port import AddressUnknown
from tests.broker.houses import House, RealHouse, eventually


def test_browsing_shows_the_queue_in_its_order_and_takes_nothing(house: House) -> None:
    setting = house.setting()
    texts = [str(number) for number in range(450)]
    house.publish(setting.address, *texts)
    for _ in range(2):
        found = house.look(setting.address, setting.key)
        assert [message.body.value for message in found] == texts
    assert house.figures(setting).messages == 450
    _, owner = house.consume(setting, window=1)
    assert owner.got().count == 0


def test_browsing_stops_at_its_limit(house: House) -> None:
    setting = house.setting()
    house.publish(setting.address, *"abcde")
    assert [message.body.value for message in house.look(setting.address, setting.key, limit=2)] == ["a", "b"]
    assert house.look(setting.address, setting.key, limit=0) == []


def test_an_empty_queue_ends_at_once(house: House) -> None:
    setting = house.setting()
    assert house.look(setting.address, setting.key) == []


def test_a_walk_can_be_left_early(house: House) -> None:
    setting = house.setting()
    house.publish(setting.address, *"abc")
    walk = house.browser.browse(setting.address, setting.key, limit=10)
    first = next(walk)
    assert first.message is not None and first.message.body.value == "a"
    walk.close()  # type: ignore[attr-defined]  # a generator
    eventually(lambda: house.figures(setting).consumers == 0)
    assert house.figures(setting).messages == 3


def test_what_a_consumer_holds_is_not_seen(house: House) -> None:
    setting = house.setting()
    house.publish(setting.address, "a", "b")
    _, owner = house.consume(setting, window=1)
    owner.got()
    assert "b" in [message.body.value for message in house.look(setting.address, setting.key)]


def test_an_unknown_queue_is_refused(house: House) -> None:
    setting = house.setting()
    with pytest.raises(AddressUnknown):
        house.look(setting.address, "nobody-made-this")


def test_the_broker_keeps_nothing_of_what_a_browser_got(real: RealHouse) -> None:
    """Sent unsettled, each message stays in its memory until the link ends: 3 KB of heap for one of 1 KB."""
    setting = real.setting()
    real.publish(setting.address, "a", "b", "c")
    assert isinstance(real.browser, AmqpBrowser)
    connection, settled = AmqpConnection(real.ops), []
    try:
        receiver = real.browser._opened(connection, setting.address, setting.key)
        assert receiver.remote_snd_settle_mode == Link.SND_SETTLED
        receiver.flow(10)

        def came() -> bool:
            for kind, context in connection.step(0.05):
                if kind == DELIVERY and not context.partial:
                    settled.append(context.settled)
                    receiver.advance()
            return len(settled) == 3

        eventually(came)
    finally:
        connection.close(timeout=1.0)
    assert all(settled)
    eventually(lambda: real.figures(setting).consumers == 0)
    assert real.figures(setting).messages == 3
