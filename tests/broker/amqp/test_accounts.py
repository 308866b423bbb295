"""Which account may do what over AMQP, and what it is told."""

import pytest

from broker.amqp.browser import AmqpBrowser
from broker.amqp.consumer import AmqpConsumer
from broker.amqp.publisher import AmqpPublisher
from broker.port import AccessRefused, Account, BrokerUnavailable, Outgoing
from tests.broker.houses import DLA, Owner, RealHouse, text_message


def test_a_wrong_password_is_refused_and_never_shown(real: RealHouse) -> None:
    account = Account(real.service.amqp_url, "kma", "not-the-password")
    with pytest.raises(AccessRefused) as caught:
        AmqpPublisher(account).publish([Outgoing("x", text_message("x"))])
    assert "not-the-password" not in f"{caught.value!r} {account!r}"
    owner = Owner()
    consumer = AmqpConsumer(account, "x", "x", owner)
    consumer.start()
    assert owner.loss()[1] is True
    consumer.stop()


def test_a_publisher_may_not_consume_and_nobody_but_ops_may_send_letters(real: RealHouse) -> None:
    setting = real.setting()
    owner = Owner()
    consumer = AmqpConsumer(real.publishing, setting.address, setting.key, owner)
    consumer.start()
    assert owner.loss()[1] is True
    consumer.stop()
    for account in (real.publishing, real.kma):
        with pytest.raises(AccessRefused):
            AmqpPublisher(account).publish([Outgoing(DLA, text_message("x"))])
    publisher = AmqpPublisher(real.ops)
    publisher.publish([Outgoing(f"{DLA}::{setting.dead}", text_message("x"))])
    publisher.close()


def test_only_ops_may_browse(real: RealHouse) -> None:
    setting = real.setting()
    for account in (real.publishing, real.kma):
        with pytest.raises(AccessRefused):
            list(AmqpBrowser(account).browse(setting.address, setting.key, limit=1))


def test_a_port_where_nobody_answers_is_unavailable(real: RealHouse) -> None:
    account = Account("amqp://127.0.0.1:1", "kma", "x")
    with pytest.raises(BrokerUnavailable):
        AmqpPublisher(account).publish([Outgoing("x", text_message("x"))])
    with pytest.raises(BrokerUnavailable):
        list(AmqpBrowser(account).browse("x", "x", limit=1))
